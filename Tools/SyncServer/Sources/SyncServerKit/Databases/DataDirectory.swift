#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// The directory with a store for each database.
///
/// SAFETY: C calls get strings that live until they return, and an open directory. Its entries are
/// read up to their own length, each before the next is requested.
struct DataDirectory: Sendable {
  let path: String
  private static let suffix = ".tidemark"

  /// Uses a directory; creates it if there is none.
  init(_ path: String) throws(SettingsError) {
    self.path = path
    if unsafe mkdir(path, 0o700) != 0, errno != EEXIST {
      throw SettingsError(
        "cannot make the directory \(path): \(String(errno: errno)); "
          + "make it, or give another one with --data", .unusable)
    }
    // Only an attempt shows whether it is writable: that depends on permissions, mount and user.
    let probe = path + "/.probe"
    if unsafe mkdir(probe, 0o700) != 0, errno != EEXIST {
      throw SettingsError(
        "cannot write in the directory \(path): \(String(errno: errno)); "
          + "give its user the right to, or another directory with --data", .unusable)
    }
    unsafe rmdir(probe)
  }

  /// The path of a database's store.
  func store(of name: DatabaseName) -> String { "\(path)/\(name)\(Self.suffix)" }

  /// Whether there is a store of a database, or another file at its path.
  func has(_ name: DatabaseName) -> Bool { unsafe access(store(of: name), F_OK) == 0 }

  /// The names of all databases.
  func names() -> [DatabaseName] {
    guard let directory = unsafe opendir(path) else { return [] }
    defer { unsafe closedir(directory) }
    var names: [DatabaseName] = []
    // Memory may end after the `d_reclen` bytes of an entry, so the structure is never copied.
    let start = MemoryLayout<dirent>.offset(of: \.d_name) ?? 0
    while let entry = unsafe readdir(directory) {
      let length = unsafe Int(entry.pointee.d_reclen) - start
      let name = unsafe UnsafeRawBufferPointer(
        start: UnsafeRawPointer(entry) + start, count: max(0, length))
      let text = unsafe String(decoding: name.prefix { $0 != 0 }, as: UTF8.self)
      guard text.hasSuffix(Self.suffix),
        let name = DatabaseName(text.dropLast(Self.suffix.utf8.count))
      else { continue }
      names.append(name)
    }
    return names
  }
}

extension String {
  /// The system's text for an error.
  init(errno number: Int32) {
    guard let text = unsafe strerror(number) else {
      self = "error \(number)"
      return
    }
    self = unsafe String(cString: text)
  }
}
