module golabels

go 1.16
