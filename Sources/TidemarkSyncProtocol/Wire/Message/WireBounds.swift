internal import Tidemark
package import TidemarkEngine

/// Checks values of a message against the protocol's bounds, both when it is read and when written.
enum WireBounds {
  @inline(__always)
  static func check<T: FixedWidthInteger>(
    _ value: T, in range: ClosedRange<T>, _ name: StaticString
  ) throws(FormatError) {
    guard range.contains(value) else {
      throw FormatError(
        "\(name) is \(value); \(range.lowerBound) to \(range.upperBound) are allowed")
    }
  }

  static func check(rows: Int) throws(FormatError) {
    guard rows <= WireLimits.rows else {
      throw FormatError("\(rows) rows in one message; at most \(WireLimits.rows) are allowed")
    }
  }

  static func check(key: [UInt8]) throws(FormatError) {
    guard !key.isEmpty, key.count <= Limits.keyBytes else {
      throw FormatError("a key has \(key.count) bytes; 1 to \(Limits.keyBytes) are allowed")
    }
  }

  /// Labels and prefixes are in byte order, each once.
  static func check<T: WireBytes>(
    _ list: [T], atMost count: Int, _ range: ClosedRange<Int>, _ name: StaticString
  ) throws(FormatError) {
    guard list.count <= count else {
      throw FormatError("\(list.count) \(name); at most \(count) are allowed")
    }
    for (index, element) in list.enumerated() {
      guard range.contains(element.wireBytes.count) else {
        throw FormatError(
          "one of the \(name) has \(element.wireBytes.count) bytes; \(range.lowerBound) to "
            + "\(range.upperBound) are allowed")
      }
      let isBehind =
        index == 0
        || list[index - 1].wireBytes.rawSpan.compare(to: element.wireBytes.rawSpan) < 0
      guard isBehind else { throw FormatError("\(name) are not in order") }
    }
  }
}

/// An element of a list that is coded as byte strings.
protocol WireBytes {
  var wireBytes: [UInt8] { get }
  init(_ bytes: [UInt8])
}

extension EntryLabel: WireBytes {
  var wireBytes: [UInt8] { bytes }
}

extension [UInt8]: WireBytes {
  var wireBytes: [UInt8] { self }
}

extension FeedPosition {
  @inline(__always)
  func check() throws(FormatError) {
    guard offset < WireLimits.counts else {
      throw FormatError("a number is \(offset); at most \(WireLimits.counts - 1) is allowed")
    }
  }
}

extension AttachmentReference {
  func check() throws(FormatError) {
    guard sha256.count == SHA256.byteCount else {
      throw FormatError("an attachment's hash has \(sha256.count) bytes")
    }
    try WireBounds.check(length, in: 0...Limits.attachmentBytes, "the length of a content")
  }

  package func checkBlob() throws(FormatError) {
    try check()
    let range = SyncContent.mostInlineBytes + 1...Limits.valueBytes
    try WireBounds.check(length, in: range, "the length of a value that travels apart")
  }
}

extension SyncContent {
  fileprivate func check(isPut: Bool) throws(FormatError) {
    guard isPut || value.isEmpty else { throw FormatError("a value where none may be") }
    try WireBounds.check(value.count, in: 0...Limits.valueBytes, "the length of a value")
    if let blob {
      try blob.checkBlob()
      guard isPut, value.isEmpty else { throw FormatError("a large value where none may be") }
    }
    if !labels.isEmpty {
      try WireBounds.check(
        labels, atMost: Limits.labelsPerEntry, 1...Limits.labelBytes, "labels")
    }
    if let attachment {
      try attachment.check()
      guard isPut else { throw FormatError("an attachment where none may be") }
    }
    try WireBounds.check(hash?.count ?? 0, in: 0...Limits.hashBytes, "the length of a hash")
  }
}

extension PushedChange {
  /// Its sequence and base are not checked here: the handler rejects only this change for them.
  func check() throws(FormatError) {
    try WireBounds.check(key: key)
    try content.check(isPut: kind == .put)
    try time?.check()
  }
}

extension FeedEntry {
  func check() throws(FormatError) {
    try position.check()
    try FeedPosition(epoch: 0, offset: operation.sequence).check()
    if kind == .own {
      guard key.isEmpty else { throw FormatError("a key where none may be") }
    } else {
      try WireBounds.check(key: key)
    }
    try content.check(isPut: kind == .put)
    try time?.check()
  }
}

extension Timestamp {
  fileprivate func check() throws(FormatError) {
    guard nanoseconds < 1_000_000_000 else { throw FormatError("a time is out of bounds") }
  }
}

extension Sequence<CollectionPolicy> {
  /// Whether the policies are few enough for one answer.
  package func check() throws(FormatError) {
    let (count, bytes) = reduce((0, 0)) { ($0.0 + 1, $0.1 + $1.prefix.bytes.count) }
    guard count <= WireLimits.policies, bytes <= WireLimits.policyBytes else {
      throw FormatError(
        "\(count) policies with prefixes of \(bytes) bytes; at most \(WireLimits.policies) with "
          + "\(WireLimits.policyBytes) bytes are allowed")
    }
  }
}
