import LogtoolKit

LogtoolMain.main()
