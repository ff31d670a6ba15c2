module golatency

go 1.16
