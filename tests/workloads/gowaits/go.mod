module gowaits

go 1.16
