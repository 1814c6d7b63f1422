#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// The directory with a store for each database.
///
/// SAFETY: C calls get strings that live as long as the call, and a directory that is open.
struct DataDirectory: Sendable {
  let path: String
  private static let suffix = ".tidemark"

  /// Uses a directory; makes it when there is none.
  init(_ path: String) throws(SettingsError) {
    self.path = path
    guard unsafe mkdir(path, 0o700) != 0, errno != EEXIST else { return }
    throw SettingsError("cannot make the directory \(path): \(String(errno: errno))")
  }

  /// Where the store of a database is.
  func store(of name: DatabaseName) -> String { "\(path)/\(name)\(Self.suffix)" }

  /// How many stores there are.
  func count() -> Int {
    guard let directory = unsafe opendir(path) else { return 0 }
    defer { unsafe closedir(directory) }
    var count = 0
    while let entry = unsafe readdir(directory) {
      let isStore = unsafe withUnsafeBytes(of: entry.pointee.d_name) { bytes in
        let end = unsafe bytes.firstIndex(of: 0) ?? bytes.endIndex
        return unsafe bytes[..<end].suffix(Self.suffix.utf8.count).elementsEqual(Self.suffix.utf8)
      }
      if isStore { count += 1 }
    }
    return count
  }
}

extension String {
  /// What the system says of an error.
  init(errno number: Int32) {
    guard let text = unsafe strerror(number) else {
      self = "error \(number)"
      return
    }
    self = unsafe String(cString: text)
  }
}
