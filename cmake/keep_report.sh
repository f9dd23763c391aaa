#!/bin/sh
# keep_report.sh OBJECT COMPILER ARGUMENTS...: compiles, and keeps what the compiler said about the
# kernels beside the object, where tests/repo/kernel_code_test.cc reads it.
object=$1
shift
"$@" 2>"$object.report"
status=$?
cat "$object.report" >&2
exit $status
