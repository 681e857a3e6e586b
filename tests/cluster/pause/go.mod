module hera-specon.io/tests/pause

go 1.26.0
