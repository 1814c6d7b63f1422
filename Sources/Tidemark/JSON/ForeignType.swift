internal import TidemarkEngine
internal import TidemarkNDJSON

/// Types of Foundation that JSON has a customary form for, recognized by their names, since the
/// library does without Foundation.
///
/// A `Date` codes itself as seconds since 2001, `Data` as an array of numbers, a `URL` as an object
/// of two fields. Here they are an RFC 3339 text, base64 and the address; what they write
/// themselves is read as well.
enum ForeignType: Sendable {
  case date
  case data
  case url
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
    default: self = .none
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
