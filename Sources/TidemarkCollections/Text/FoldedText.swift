internal import CTidemark

// SAFETY: the C functions take numbers, check them against their tables, and return numbers.

/// Text in the form in which it is searched and compared, without regard to case and accents.
///
/// ```swift
/// FoldedText("Ångström") == FoldedText("angstrom")      // true
/// FoldedText("STRASSE").hasPrefix(FoldedText("straß"))  // true
/// ```
/// It is the text decomposed canonically and folded by case, both in full as Unicode defines them
/// (The Unicode Standard, section 3.13, D145), without the marks after letters of the Latin,
/// Greek, Cyrillic, Hebrew and Arabic scripts. Other scripts keep theirs, where they make another
/// letter: `が` is not `か`, nor begins with it. Besides, Latin letters that Unicode names as
/// another one with something are that one (`ł`, `ø`, `đ`), `æ` and `œ` are two, full and half
/// width are the same, and scalars that nobody sees are left out: soft hyphens, joiners, marks of
/// direction, the Arabic tatweel. The tables are Tidemark's own, so that the bytes are the same on
/// every system.
public struct FoldedText: Hashable, Comparable, Sendable {
  /// The folded text in UTF-8: it can be stored and compared byte by byte.
  public let bytes: [UInt8]

  /// The version of Unicode by which texts are folded: major, minor and update, a byte each, and
  /// above them the number of Tidemark's rules.
  ///
  /// Folded texts that are kept hold for this version only.
  public static var unicodeVersion: UInt32 { ctidemark_folding_version() }

  /// Folds a text, so that it can be compared without regard to case and accents.
  public init(_ text: some StringProtocol) {
    var folder = TextFolder()
    bytes = folder.fold(text)
  }

  /// Whether the text begins with another; every text begins with the empty one.
  public func hasPrefix(_ prefix: FoldedText) -> Bool { bytes.starts(with: prefix.bytes) }

  /// Whether another text stands somewhere in this one.
  public func contains(_ other: FoldedText) -> Bool {
    guard let first = other.bytes.first else { return true }
    var start = bytes.startIndex
    while bytes.count - start >= other.bytes.count {
      guard let found = bytes[start...].firstIndex(of: first) else { return false }
      if bytes[found...].starts(with: other.bytes) { return true }
      start = found + 1
    }
    return false
  }

  /// Sorts folded texts by their Unicode scalars.
  public static func < (one: FoldedText, other: FoldedText) -> Bool {
    one.bytes.lexicographicallyPrecedes(other.bytes)
  }

  /// Bytes that sort as the folded text does, and texts that are folded alike by their own bytes.
  ///
  /// - Parameter text: the text that was folded.
  public func sortKey(of text: some StringProtocol) -> [UInt8] {
    var key: [UInt8] = []
    key.reserveCapacity(2 * bytes.count + 2)
    // A zero ends the folded text, so zeros within it are told apart by the byte behind them.
    for byte in bytes {
      key.append(byte)
      if byte == 0 { key.append(0xFF) }
    }
    key.append(0)
    key.append(0)
    key.append(contentsOf: text.utf8)
    return key
  }
}
