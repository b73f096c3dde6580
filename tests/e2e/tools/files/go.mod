module topolab/tools/files

go 1.26.1

require sigs.k8s.io/aws-fsx-csi-driver v1.9.0 // indirect
