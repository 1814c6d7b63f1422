import TidemarkTestKit

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#endif

extension SimulatedErrno {
  static let all: [SimulatedErrno] = [
    .EPERM, .ENOENT, .EINTR, .EIO, .EBADF, .EAGAIN, .ENOMEM, .EACCES, .EEXIST, .ENOTDIR, .EISDIR,
    .EINVAL, .ENFILE, .EMFILE, .EFBIG, .ENOSPC, .EROFS, .ENOTEMPTY, .EDQUOT,
  ]

  #if canImport(Darwin) || canImport(Glibc) || canImport(Musl)
    static let systems: [Int32] = errnos()
  #endif
}

private func errnos() -> [Int32] {
  [
    EPERM, ENOENT, EINTR, EIO, EBADF, EAGAIN, ENOMEM, EACCES, EEXIST, ENOTDIR, EISDIR,
    EINVAL, ENFILE, EMFILE, EFBIG, ENOSPC, EROFS, ENOTEMPTY, EDQUOT,
  ]
}
