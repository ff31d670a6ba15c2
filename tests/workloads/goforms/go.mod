module goforms

go 1.16
