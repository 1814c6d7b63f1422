internal import TidemarkEngine
internal import TidemarkNDJSON

/// Types whose JSON is another one than they would write by themselves.
///
/// Types of Foundation are recognized by their names, since the library does without Foundation.
/// A `Date` codes itself as seconds since 2001, `Data` as an array of numbers, a `URL` as an object
/// of two fields, a `Decimal` as one of five. Here they are an RFC 3339 text, base64, the address
/// and a number; what they write themselves is read as well.
///
/// A `Set`, and a `Dictionary` whose keys are no texts, is an array whose order is another one at
/// each start of a program. Here its elements are in the order of their bytes.
enum ForeignType: Sendable {
  case date
  case data
  case url
  case decimal
  case set
  case dictionary
  case none

  private static let known = Lock<[ObjectIdentifier: ForeignType]>([:])

  /// The kind of a type.
  init(_ type: any Any.Type) {
    let id = ObjectIdentifier(type)
    if let kind = Self.known.withLock({ $0[id] }) {
      self = kind
      return
    }
    switch String(reflecting: type) {
    case "Foundation.Date", "FoundationEssentials.Date": self = .date
    case "Foundation.Data", "FoundationEssentials.Data": self = .data
    case "Foundation.URL", "FoundationEssentials.URL": self = .url
    case "Foundation.Decimal", "FoundationEssentials.Decimal", "__C.NSDecimal": self = .decimal
    default:
      self =
        type is any SetValue.Type ? .set : type is any DictionaryValue.Type ? .dictionary : .none
    }
    let kind = self
    Self.known.withLock { $0[id] = kind }
  }

  /// 2001-01-01T00:00:00Z, in seconds since 1970.
  private static let reference = 978_307_200.0

  /// A date as a text.
  /// - Parameter seconds: since 2001.
  /// - Returns: nil where the text would name another date.
  static func text(ofDate seconds: Double) -> [UInt8]? {
    guard seconds.isFinite, abs(seconds) < 1e12 else { return nil }
    let whole = seconds.rounded(.down)
    // Microseconds are as fine as today's dates are; nanoseconds as fine as the text can be.
    for unit in [1e6, 1e9] {
      let parts = ((seconds - whole) * unit).rounded()
      guard parts < unit else { continue }
      let time = Timestamp(
        seconds: Int64(whole) + Int64(reference), nanoseconds: UInt32(parts * (1e9 / unit)))
      var text: [UInt8] = [UInt8(ascii: "\"")]
      time.appendRFC3339(to: &text)
      text.append(UInt8(ascii: "\""))
      if self.seconds(ofDate: text[...]) == seconds { return text }
    }
    return nil
  }

  /// The seconds since 2001 of a date's text, with its quotes.
  static func seconds(ofDate text: ArraySlice<UInt8>) -> Double? {
    guard let time = Timestamp(rfc3339: Array(text.dropFirst().dropLast()).rawSpan) else {
      return nil
    }
    return Double(time.seconds) - reference + Double(time.nanoseconds) / 1e9
  }

  /// Bytes as a text.
  static func text(ofData bytes: [UInt8]) -> [UInt8] {
    var text: [UInt8] = [UInt8(ascii: "\"")]
    Base64.encode(bytes.rawSpan, into: &text)
    text.append(UInt8(ascii: "\""))
    return text
  }
}

/// A set of the standard library.
protocol SetValue {}

/// A dictionary of the standard library.
protocol DictionaryValue {}

extension Set: SetValue {}
extension Dictionary: DictionaryValue {}
