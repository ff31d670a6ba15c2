module golabelled

go 1.16
