module gohttp

go 1.21
