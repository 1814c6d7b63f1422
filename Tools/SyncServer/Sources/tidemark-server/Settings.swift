internal import ArgumentParser
internal import SyncServerKit

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// Settings from environment variables, which count where the option is not in the command line.
enum Setting {
  /// The value of `TIDEMARK_NAME`.
  static func text(_ name: String) -> String? {
    guard let value = unsafe getenv("TIDEMARK_" + name) else { return nil }
    let text = unsafe String(cString: value)
    return text.isEmpty ? nil : text
  }

  /// The words of `TIDEMARK_NAME`, for options that can be given more than once.
  static func words(_ name: String) -> [String] {
    (text(name) ?? "").split(whereSeparator: \.isWhitespace).map(String.init)
  }

  static func number<N: LosslessStringConvertible>(_ name: String) throws -> N? {
    guard let text = text(name) else { return nil }
    guard let number = N(text) else {
      throw ValidationError("TIDEMARK_\(name) is no number that is possible")
    }
    return number
  }

  static func flag(_ name: String) throws -> Bool? {
    switch text(name) {
    case nil: nil
    case "1", "true", "yes": true
    case "0", "false", "no": false
    default: throw ValidationError("TIDEMARK_\(name) has to be 1 or 0")
    }
  }

  /// The bytes of a file without white space at the end, which editors append to a secret.
  static func file(_ path: String) throws -> [UInt8] {
    var bytes: [UInt8]
    do { bytes = try SettingsFile.bytes(at: path) } catch {
      throw ValidationError(error.description)
    }
    while let last = bytes.last, last == 10 || last == 13 || last == 32 { bytes.removeLast() }
    return bytes
  }

  static func textFile(_ path: String) throws -> String {
    guard let text = String(validating: try file(path), as: UTF8.self) else {
      throw ValidationError("\(path) is not UTF-8")
    }
    return text
  }
}
