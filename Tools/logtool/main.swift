import LogtoolKit
