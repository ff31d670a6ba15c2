module goholds

go 1.16
