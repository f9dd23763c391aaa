#include "plan/hardware.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <sstream>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/text.h"

namespace epsweep {
namespace {

namespace fs = std::filesystem;

const std::string kDir = EPSWEEP_SOURCE_DIR "/configs/hardware";

HardwareShape read(const std::string& text,
                   const std::optional<HardwareShape>& base = std::nullopt) {
  return read_hardware_shape(parse_yaml(text, "h.yaml"), base);
}

std::string refusal(const std::string& text) {
  try {
    read(text);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields(1);
  for (const char c : line) {
    if (c == ',') {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  return fields;
}

// [name][column]; the values of tests/data/hardware_expectations.csv, which is made from published
// peaks and not from the files.
std::map<std::string, std::map<std::string, std::string>> expectations() {
  std::istringstream lines(
      read_text_file(EPSWEEP_SOURCE_DIR "/tests/data/hardware_expectations.csv"));
  std::string line;
  std::getline(lines, line);
  const std::vector<std::string> columns = fields_of(line);
  std::map<std::string, std::map<std::string, std::string>> rows;
  while (std::getline(lines, line)) {
    const std::vector<std::string> fields = fields_of(line);
    EXPECT_EQ(fields.size(), columns.size()) << line;
    for (std::size_t i = 0; i < columns.size(); ++i) rows[fields[0]][columns[i]] = fields.at(i);
  }
  return rows;
}

std::optional<double> number(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(std::stod(text));
}

TEST(Hardware, EveryShippedFileHasItsPublishedNumbers) {
  auto rows = expectations();
  std::size_t num_files = 0;
  for (const auto& file : fs::directory_iterator(kDir)) {
    const std::string path = file.path().string();
    SCOPED_TRACE(path);
    ++num_files;
    const HardwareShape shape =
        read_hardware_shape(parse_yaml(read_text_file(path), path), std::nullopt);
    EXPECT_EQ(shape.name, file.path().stem().string());
    EXPECT_FALSE(shape.source.empty());
    ASSERT_TRUE(rows.contains(shape.name));
    auto& row = rows.at(shape.name);
    const auto gb = number(row["memory_gb"]);
    EXPECT_EQ(shape.memory_bytes.has_value(), gb.has_value());
    if (gb) {
      EXPECT_EQ(*shape.memory_bytes, std::llround(*gb) * 1'000'000'000);
    }
    const auto size = number(row["domain_size"]);
    EXPECT_EQ(shape.domain_size, size ? std::optional(static_cast<int>(*size)) : std::nullopt);
    EXPECT_EQ(shape.peak.bf16_tflops, number(row["bf16_tflops"]));
    EXPECT_EQ(shape.peak.fp8_tflops, number(row["fp8_tflops"]));
    EXPECT_EQ(shape.peak.fp4_tflops, number(row["fp4_tflops"]));
    EXPECT_EQ(shape.peak.memory_tb_per_s, number(row["memory_tb_per_s"]));
    EXPECT_EQ(shape.peak.link_gb_per_s, number(row["link_gb_per_s"]));
    EXPECT_EQ(shape.peak.nic_gbit_per_s, number(row["nic_gbit_per_s"]));
    EXPECT_EQ(shape.measured.bf16_tflops, number(row["measured_bf16_tflops"]));
    EXPECT_EQ(shape.measured.fp8_tflops, number(row["measured_fp8_tflops"]));
    EXPECT_EQ(shape.measured.fp4_tflops, number(row["measured_fp4_tflops"]));
    EXPECT_EQ(shape.measured.memory_tb_per_s, number(row["measured_memory_tb_per_s"]));
  }
  EXPECT_EQ(num_files, rows.size());
}

TEST(Hardware, ABaseSuppliesWhatIsAbsent) {
  const HardwareShape base =
      read("name: x\nmemory_gb: 80\ndomain_size: 8\npeak: {bf16_tflops: 100, link_gb_per_s: 450}");
  const HardwareShape changed = read("memory_gb: 96.5\npeak: {link_gb_per_s: 200}", base);
  EXPECT_EQ(changed.name, "x");
  EXPECT_EQ(changed.memory_bytes, 96'500'000'000);
  EXPECT_EQ(changed.peak.bf16_tflops, 100);
  EXPECT_EQ(changed.peak.link_gb_per_s, 200);
  EXPECT_EQ(changed.domain_size, 8);
}

TEST(Hardware, RefusesWhatCannotBe) {
  struct Fault {
    const char *text, *part;
  };
  const Fault faults[] = {
      {"memory_gb: 80", "the key 'name' is missing"},
      {"name: x\nmemory_gb: 0", "h.yaml:2: memory_gb: 0 is outside"},
      {"name: x\nmemory_gb: -80", "outside"},
      {"name: x\nmemory_gb: lots", "expected a number"},
      {"name: x\nmemroy_gb: 80", "nearest valid key: 'memory_gb'"},
      {"name: x\ndomain_size: 0", "0 is outside 1"},
      {"name: x\npeak: {bf16_tflop: 1}", "nearest valid key: 'bf16_tflops'"},
      {"name: x\npeak: {bf16_tflops: 100}\nmeasured: {source: y, bf16_tflops: 101}",
       "bf16_tflops: 101 measured is above the peak of 100"},
      {"name: x\nmeasured: {bf16_tflops: 1}", "the key 'source' is missing"},
  };
  for (const Fault& fault : faults) {
    EXPECT_NE(refusal(fault.text).find(fault.part), std::string::npos)
        << fault.text << "\n  " << refusal(fault.text);
  }
}

TEST(Hardware, JsonSaysNullForWhatIsNotStated) {
  const Json json = hardware_json(read("name: x\npeak: {fp8_tflops: 5}"));
  EXPECT_TRUE(json.at("memory_bytes").is_null());
  EXPECT_TRUE(json.at("peak").at("bf16_tflops").is_null());
  EXPECT_EQ(json.at("peak").at("fp8_tflops"), 5);
}

}  // namespace
}  // namespace epsweep
