#if canImport(Darwin)
  internal import Foundation
#else
  internal import FoundationEssentials
#endif

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Android)
  internal import Android
#endif

/// The directory with a store for each database.
///
/// SAFETY: C calls get strings that live until they return.
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
  func store(of name: DatabaseName) -> String { Self.store(of: name, in: path) }
  static func store(of name: DatabaseName, in path: String) -> String {
    "\(path)/\(name)\(suffix)"
  }

  /// Whether there is a store of a database, or another file at its path.
  func has(_ name: DatabaseName) -> Bool { unsafe access(store(of: name), F_OK) == 0 }

  /// The names of all databases.
  func names() -> [DatabaseName] {
    let files = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
    return files.compactMap { file in
      file.hasSuffix(Self.suffix) ? DatabaseName(file.dropLast(Self.suffix.utf8.count)) : nil
    }
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
