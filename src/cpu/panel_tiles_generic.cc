#include "cpu/panel_product.h"

namespace epsweep {

const TileCode& tile_code() {
  static const TileCode code{{}, "only x86-64 has AMX"};
  return code;
}

}  // namespace epsweep
