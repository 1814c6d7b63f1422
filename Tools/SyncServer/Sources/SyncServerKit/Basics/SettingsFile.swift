#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Android)
  internal import Android
#endif

/// A file with settings, secrets or certificates.
///
/// SAFETY: C calls get memory that lives as long as the call.
package enum SettingsFile {
  /// Longest file in bytes.
  private static let most = 4 << 20

  /// Reads a regular file as a whole. Other files are refused: a read from a pipe blocks until data
  /// is written to it, and would keep the server from ending.
  package static func bytes(at path: String) throws(SettingsError) -> [UInt8] {
    let descriptor = unsafe open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
    guard descriptor >= 0 else { throw refused(path, String(errno: errno)) }
    defer { close(descriptor) }
    var status = stat()
    guard unsafe fstat(descriptor, &status) == 0 else { throw refused(path, String(errno: errno)) }
    guard status.st_mode & S_IFMT == S_IFREG else { throw refused(path, "it is no regular file") }
    guard status.st_size <= most else { throw refused(path, "it is longer than \(most) bytes") }
    var bytes: [UInt8] = []
    var part = [UInt8](repeating: 0, count: 16 << 10)
    while bytes.count <= most {
      let count = unsafe read(descriptor, &part, part.count)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw refused(path, String(errno: errno)) }
      guard count > 0 else { break }
      bytes += part[..<count]
    }
    return bytes
  }

  private static func refused(_ path: String, _ reason: String) -> SettingsError {
    SettingsError("cannot read \(path): \(reason)", .unreadable)
  }
}
