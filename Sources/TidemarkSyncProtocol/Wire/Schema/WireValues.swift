internal import Tidemark
package import TidemarkEngine
internal import TidemarkNDJSON

/// A value that is coded as a string in JSON, and in its own way in a frame.
protocol WireValue {
  mutating func code(_ frame: inout FrameCursor) throws(FormatError)
  func appendText(to text: inout [UInt8])
  init?(wireText text: [UInt8])
}

extension UInt64: WireValue {
  mutating func code(_ frame: inout FrameCursor) throws(FormatError) {
    try frame.u64(&self)
  }

  /// Sixteen lower-case hexadecimal digits.
  func appendText(to text: inout [UInt8]) {
    for shift in stride(from: UInt64(60), through: 0, by: -4) {
      let digit = UInt8(truncatingIfNeeded: self >> shift & 15)
      text.append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
    }
  }

  init?(wireText text: [UInt8]) { self.init(hexadecimal: text[...]) }

  fileprivate init?(hexadecimal digits: ArraySlice<UInt8>) {
    guard digits.count == 16 else { return nil }
    self = 0
    for digit in digits {
      guard let value = Hex.value(digit) else { return nil }
      self = self << 4 | UInt64(value)
    }
  }

  /// A decimal number without sign and without leading zeros, so that each has one form.
  fileprivate init?(decimal digits: ArraySlice<UInt8>) {
    guard digits.first != UInt8(ascii: "0") || digits.count == 1,
      digits.allSatisfy({ $0 &- UInt8(ascii: "0") < 10 })
    else { return nil }
    self.init(String(decoding: digits, as: UTF8.self))
  }
}

extension BatchID: WireValue {
  mutating func code(_ frame: inout FrameCursor) throws(FormatError) {
    try frame.u64(&bits)
  }

  func appendText(to text: inout [UInt8]) { bits.appendText(to: &text) }

  init?(wireText text: [UInt8]) {
    guard let bits = UInt64(wireText: text) else { return nil }
    self.init(bits)
  }
}

extension ReplicaID: WireValue {
  package mutating func code(_ frame: inout FrameCursor) throws(FormatError) {
    var bytes = bytes
    try frame.raw(&bytes, count: Self.byteCount)
    if frame.isReading { self = ReplicaID(unchecked: bytes) }
  }

  func appendText(to text: inout [UInt8]) { text.append(contentsOf: description.utf8) }

  init?(wireText text: [UInt8]) { self.init(String(decoding: text, as: UTF8.self)) }
}

/// The bits of a fingerprint or of a sum of them.
extension UInt128: WireValue {
  mutating func code(_ frame: inout FrameCursor) throws(FormatError) {
    var (low, high) = (UInt64(truncatingIfNeeded: self), UInt64(truncatingIfNeeded: self >> 64))
    try frame.u64(&low)
    try frame.u64(&high)
    self = UInt128(high) << 64 | UInt128(low)
  }

  /// Thirty-two hexadecimal digits.
  func appendText(to text: inout [UInt8]) {
    UInt64(truncatingIfNeeded: self >> 64).appendText(to: &text)
    UInt64(truncatingIfNeeded: self).appendText(to: &text)
  }

  init?(wireText text: [UInt8]) {
    guard text.count == 32, let high = UInt64(hexadecimal: text[..<16]),
      let low = UInt64(hexadecimal: text[16...])
    else { return nil }
    self = UInt128(high) << 64 | UInt128(low)
  }
}

extension FeedPosition: WireValue {
  package mutating func code(_ frame: inout FrameCursor) throws(FormatError) {
    try frame.u64(&epoch)
    try frame.varint(&offset)
    frame.last = self
  }

  /// Sixteen hexadecimal digits of epoch, a hyphen, the offset.
  func appendText(to text: inout [UInt8]) {
    epoch.appendText(to: &text)
    text.append(UInt8(ascii: "-"))
    text.append(contentsOf: String(offset).utf8)
  }

  init?(wireText text: [UInt8]) {
    guard text.count >= 18, text[16] == UInt8(ascii: "-"),
      let epoch = UInt64(hexadecimal: text[..<16]), let offset = UInt64(decimal: text[17...])
    else { return nil }
    self.init(epoch: epoch, offset: offset)
  }
}

extension OperationID: WireValue {
  mutating func code(_ frame: inout FrameCursor) throws(FormatError) {
    try replica.code(&frame)
    try frame.varint(&sequence)
  }

  /// Thirty-two hexadecimal digits of replica, a dot, the sequence.
  func appendText(to text: inout [UInt8]) {
    replica.appendText(to: &text)
    text.append(UInt8(ascii: "."))
    text.append(contentsOf: String(sequence).utf8)
  }

  init?(wireText text: [UInt8]) {
    guard text.count >= 34, text[32] == UInt8(ascii: "."),
      let replica = ReplicaID(wireText: Array(text[..<32])),
      let sequence = UInt64(decimal: text[33...])
    else { return nil }
    self.init(replica: replica, sequence: sequence)
  }
}

extension AttachmentReference: WireValue {
  /// An empty reference, into which a reader decodes.
  static let blank = AttachmentReference(sha256: [], length: 0)

  mutating func code(_ frame: inout FrameCursor) throws(FormatError) {
    var (hash, count) = (sha256, length)
    try frame.raw(&hash, count: SHA256.byteCount)
    try frame.varint(&count, atMost: Limits.attachmentBytes)
    if frame.isReading { self = AttachmentReference(sha256: hash, length: count) }
  }

  /// `sha256:`, sixty-four hexadecimal digits, `:`, the length.
  func appendText(to text: inout [UInt8]) { text.append(contentsOf: engineID.text.utf8) }

  init?(wireText text: [UInt8]) {
    guard let id = AttachmentID(text: String(decoding: text, as: UTF8.self)) else { return nil }
    self.init(id)
  }
}

/// An enumeration that is coded as a name in JSON, and in a frame as its number from 1.
protocol WireChoice: WireValue, Equatable {
  static var wireOrder: [Self] { get }
  static var wireNames: [StaticString] { get }
}

extension WireChoice {
  private var index: Int { Self.wireOrder.firstIndex(of: self) ?? 0 }

  var wireName: String { Self.wireNames[index].description }

  mutating func code(_ frame: inout FrameCursor) throws(FormatError) {
    var code = UInt8(index + 1)
    try frame.u8(&code)
    guard (1...Self.wireOrder.count).contains(Int(code)) else {
      throw FormatError("choice \(code) is not known here")
    }
    self = Self.wireOrder[Int(code) - 1]
  }

  func appendText(to text: inout [UInt8]) { text.append(contentsOf: wireName.utf8) }

  init?(wireText text: [UInt8]) {
    guard let index = Self.wireNames.firstIndex(where: { text.rawSpan.holds($0) }) else {
      return nil
    }
    self = Self.wireOrder[index]
  }
}

extension ChangeKind: WireChoice {
  static let wireOrder: [Self] = [.put, .delete]
  static let wireNames: [StaticString] = ["put", "delete"]
}

extension FeedEntry.Kind: WireChoice {
  static let wireOrder: [Self] = [.put, .delete, .own, .left]
  static let wireNames: [StaticString] = ["put", "delete", "own", "left"]
}

extension ConflictPolicy: WireChoice {
  static let wireOrder: [Self] = [.detect, .lastWriterWins]
  static let wireNames: [StaticString] = ["detect", "last_writer_wins"]
}

extension PeerError.Kind: WireChoice {
  static let wireOrder: [Self] = [
    .unavailable, .busy, .unauthorized, .forbidden, .cursorGone, .leaseExpired, .malformed,
    .failed,
  ]
  static let wireNames: [StaticString] = [
    "unavailable", "busy", "unauthorized", "forbidden", "cursor_gone", "lease_expired",
    "malformed", "failed",
  ]
}

extension WireMessage.Kind: WireChoice {
  static var wireOrder: [Self] { allCases }
  static let wireNames: [StaticString] = [
    "hello", "push", "pull", "values", "digest", "attach", "fetch", "hello_answer", "push_answer",
    "pull_answer", "values_answer", "digest_answer", "attach_answer", "fetch_answer", "error",
  ]

  /// The name of the message kind in the protocol's JSON form.
  public var name: String { wireName }
}
