internal import TidemarkEngine

/// A type whose values can be indexed: they have bytes that sort as the values do.
///
/// Whole numbers, `Double`, `Float`, `Bool`, `String`, `[UInt8]` and `Timestamp` conform,
/// optional ones too (nothing comes first), and ``FoldedText``; `import TidemarkFoundation` adds
/// `Date` and `UUID`. A type of yours, such as an enumeration, conforms by its raw value.
public protocol IndexValue: Sendable {
  /// The bytes by which an index sorts the value.
  var indexTerm: IndexTerm { get }
}

/// The bytes by which an index sorts a value. Terms compare byte by byte as their values do, also
/// where several follow one another.
///
/// ```
/// u8  1 nothing, 2 false, 3 true, 4 negative whole number, 5 whole number,
///     6 number with a fraction, 7 text or bytes, 8 time, 9 no number
/// 4, 5, 6: eight bytes, highest first; a fraction has the sign's bit turned, a negative one all
/// 7: the bytes, 00 as 00 FF; then 00 01
/// 8: eight bytes of seconds with the sign's bit turned, four of nanoseconds
/// ```
public struct IndexTerm: Sendable, Hashable {
  /// The number of this form, which indexes that were made in another do not fit.
  static let version: UInt8 = 2

  var bytes: [UInt8]

  private init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// The term of nil, which sorts before all other values.
  public static let nothing = IndexTerm([1])

  /// The term of a truth value: false sorts before true.
  public static func bool(_ value: Bool) -> IndexTerm { IndexTerm([value ? 3 : 2]) }

  /// The term of a signed whole number, which sorts by its value among all numbers.
  public static func integer(_ value: Int64) -> IndexTerm {
    IndexTerm([value < 0 ? 4 : 5] + value.bytesHighestFirst)
  }

  /// The term of an unsigned whole number, which sorts by its value among all numbers.
  public static func integer(_ value: UInt64) -> IndexTerm {
    IndexTerm([5] + value.bytesHighestFirst)
  }

  /// The place of what is no number: behind all others.
  static let noNumber = IndexTerm([9])

  /// The term of a floating-point number. Zeros of both signs are equal, and NaN sorts last.
  public static func real(_ value: Double) -> IndexTerm {
    guard !value.isNaN else { return noNumber }
    let bits = value == 0 ? 0 : value.bitPattern
    return IndexTerm([6] + (bits >> 63 == 0 ? bits | 1 << 63 : ~bits).bytesHighestFirst)
  }

  /// The term of a point in time: earlier times sort first.
  public static func time(_ time: Timestamp) -> IndexTerm {
    IndexTerm(
      [8] + (time.seconds ^ .min).bytesHighestFirst + time.nanoseconds.bytesHighestFirst)
  }

  /// The length of the term that bytes begin with; nil where there is none.
  static func length(of bytes: ArraySlice<UInt8>, isInverted: Bool) -> Int? {
    let mask: UInt8 = isInverted ? 0xFF : 0
    guard let tag = bytes.first.map({ $0 ^ mask }) else { return nil }
    switch tag {
    case 1, 2, 3, 9: return 1
    case 4, 5, 6: return bytes.count >= 9 ? 9 : nil
    case 8: return bytes.count >= 13 ? 13 : nil
    case 7:
      var index = bytes.startIndex + 1
      while index + 1 < bytes.endIndex {
        if bytes[index] ^ mask == 0 {
          if bytes[index + 1] ^ mask == 1 { return index + 2 - bytes.startIndex }
          index += 1
        }
        index += 1
      }
      return nil
    default: return nil
    }
  }

  /// Whether nothing, or no number, is among terms that stand one behind the other: these are equal
  /// to none, themselves included.
  static func hasNothing(_ terms: [UInt8]) -> Bool {
    var rest = terms[...]
    while let tag = rest.first {
      let isInverted = tag > 0x7F
      if [nothing.bytes[0], noNumber.bytes[0]].contains(isInverted ? ~tag : tag) { return true }
      guard let length = length(of: rest, isInverted: isInverted) else { return false }
      rest = rest.dropFirst(length)
    }
    return false
  }

  /// The term of bytes, or of a text's UTF-8 bytes, which sorts byte by byte.
  public static func bytes(_ bytes: some Sequence<UInt8>) -> IndexTerm {
    IndexTerm(open(bytes) + [0, 1])
  }

  /// The place of a folded text: those that are folded alike come one after the other by the bytes
  /// of the text itself.
  static func folded(_ folded: FoldedText, of text: String) -> IndexTerm {
    IndexTerm(bytes(folded.bytes).bytes + bytes(text.utf8).bytes)
  }

  /// The beginning of the bytes of all texts that begin with another.
  static func open(_ bytes: some Sequence<UInt8>) -> [UInt8] {
    var term: [UInt8] = [7]
    for byte in bytes {
      term.append(byte)
      if byte == 0 { term.append(0xFF) }
    }
    return term
  }
}

extension [UInt8] {
  /// The bytes of a term, turned where the larger value comes first.
  func directed(_ isDescending: Bool) -> [UInt8] { isDescending ? map { ~$0 } : self }
}

extension IndexValue where Self: FixedWidthInteger {
  /// The index term of the number: smaller numbers sort first.
  public var indexTerm: IndexTerm {
    // Numbers beyond both are beyond 64 bits.
    Int64(exactly: self).map { .integer($0) } ?? .integer(UInt64(clamping: self))
  }
}

extension Int: IndexValue {}
extension Int8: IndexValue {}
extension Int16: IndexValue {}
extension Int32: IndexValue {}
extension Int64: IndexValue {}
extension UInt: IndexValue {}
extension UInt8: IndexValue {}
extension UInt16: IndexValue {}
extension UInt32: IndexValue {}
extension UInt64: IndexValue {}

extension Double: IndexValue {
  /// The index term of the number: smaller numbers sort first, and NaN sorts last.
  public var indexTerm: IndexTerm { .real(self) }
}

extension Float: IndexValue {
  /// The index term of the number: smaller numbers sort first, and NaN sorts last.
  public var indexTerm: IndexTerm { .real(Double(self)) }
}

extension Bool: IndexValue {
  /// The index term of the truth value: false sorts before true.
  public var indexTerm: IndexTerm { .bool(self) }
}

extension String: IndexValue {
  /// The index term of the text, which sorts by its UTF-8 bytes. Use ``FoldedText`` for an order
  /// without regard to case.
  public var indexTerm: IndexTerm { .bytes(utf8) }
}

extension [UInt8]: IndexValue {
  /// The index term of the bytes, which sorts byte by byte.
  public var indexTerm: IndexTerm { .bytes(self) }
}

extension Timestamp: IndexValue {
  /// The index term of the time: earlier times sort first.
  public var indexTerm: IndexTerm { .time(self) }
}

extension FoldedText: IndexValue {
  /// The index term of the folded text: it sorts without regard to case and accents.
  public var indexTerm: IndexTerm { .bytes(bytes) }
}

extension Optional: IndexValue where Wrapped: IndexValue {
  /// The index term of the wrapped value; nil sorts before every value.
  public var indexTerm: IndexTerm { self?.indexTerm ?? .nothing }
}

extension IndexValue where Self: RawRepresentable, RawValue: IndexValue {
  /// The index term of the raw value.
  public var indexTerm: IndexTerm { rawValue.indexTerm }
}
