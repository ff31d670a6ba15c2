module gotrace

go 1.16
