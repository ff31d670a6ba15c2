module goends

go 1.16
