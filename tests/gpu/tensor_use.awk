# One line of launch/gpu_check's tensor-use table from ncu's raw CSV page and the bench's own line
# "logical_operations,N". Durations weigh the shares of the kernels in the range.
function cells(line, into) {
  gsub(/^"|"$/, "", line)
  return split(line, into, "\",\"")
}
/^logical_operations,/ { split($0, parts, ","); logical = parts[2]; next }
/^"ID"/ {
  count = cells($0, names)
  for (i = 1; i <= count; ++i) {
    if (names[i] ~ /^sm__ops_path_tensor/) ops = i
    if (names[i] ~ /^sm__pipe_tensor/) active = i
    if (names[i] ~ /^gpu__time_duration/) duration = i
  }
  next
}
/^"[0-9]+"/ {
  cells($0, values)
  gsub(/,/, "", values[ops]); gsub(/,/, "", values[active]); gsub(/,/, "", values[duration])
  executed += values[ops]; time += values[duration]; weighted += values[active] * values[duration]
}
END {
  if (time > 0 && logical > 0) {
    printf "%s,%.3f,%.1f\n", kernel, executed / logical, weighted / time
  } else {
    printf "%s,,\n", kernel
  }
}
