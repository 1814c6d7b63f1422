internal import TidemarkEngine

/// Keys of encrypted stores, in files of their own.
enum KeyFile {
  /// Long enough for a key in any form, and for telling that a file holds none.
  private static let longest = 4096

  /// The keys that the user gave; nil for none.
  static func encryption(_ console: Console) throws(ToolError) -> Encryption? {
    var paths = console.settings.keyFiles
    if paths.isEmpty, let path = console.environment("TIDEMARK_KEY_FILE"), !path.isEmpty {
      paths = [path]
    }
    return try encryption(paths)
  }

  /// The keys in some files, the first of them for writing; nil for no files.
  static func encryption(_ paths: [String]) throws(ToolError) -> Encryption? {
    guard !paths.isEmpty else { return nil }
    var keys: [[UInt8]] = []
    for path in paths { keys.append(try key(path)) }
    let all = keys
    return .key { id in
      guard let id else { return all[0] }
      return all.first { Encryption.id(ofKey: $0) == id }
    }
  }

  private static func key(_ path: String) throws(ToolError) -> [UInt8] {
    let bytes = try InputStream.open(path).readAll(atMost: longest)
    if bytes.count == Encryption.keyBytes { return bytes }
    var digits: [UInt8] = []
    for byte in bytes where !" \t\r\n".utf8.contains(byte) {
      guard let digit = Character(Unicode.Scalar(byte)).hexDigitValue else {
        throw refusal(path, bytes)
      }
      digits.append(UInt8(digit))
    }
    guard digits.count == 2 * Encryption.keyBytes else { throw refusal(path, bytes) }
    return (0..<Encryption.keyBytes).map { digits[2 * $0] << 4 | digits[2 * $0 + 1] }
  }

  private static func refusal(_ path: String, _ bytes: [UInt8]) -> ToolError {
    ToolError(
      .usage,
      "\(path) is no key file: it has \(bytes.count) bytes, and a key is 32 bytes or 64 "
        + "hexadecimal digits")
  }
}
