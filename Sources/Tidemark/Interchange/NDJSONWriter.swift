package import TidemarkEngine

/// Writes entries as lines of NDJSON, which an import reads back to the same entries.
///
/// Keys, values and hashes are written as text when they are UTF-8, else as base64. Labels are
/// text; what is not UTF-8 in them becomes U+FFFD.
package struct NDJSONWriter: Sendable {
  /// What an entry has besides its bytes.
  package struct Header: Sendable, Hashable {
    /// What the entry does.
    package var operation: DecodedLine.Operation
    /// Who owns the entry.
    package var entryClass: EntryAttributes.Class
    /// Its sequence, for a history.
    package var sequence: UInt64?
    /// Its operation id (replica.sequence), for a history.
    package var operationID: String?
    /// Its own time.
    package var time: Timestamp?
    /// How long it stays valid, in seconds.
    package var maxAge: UInt32?

    package init(
      _ operation: DecodedLine.Operation, entryClass: EntryAttributes.Class = .owned,
      sequence: UInt64? = nil, operationID: String? = nil, time: Timestamp? = nil,
      maxAge: UInt32? = nil
    ) {
      self.operation = operation
      self.entryClass = entryClass
      self.sequence = sequence
      self.operationID = operationID
      self.time = time
      self.maxAge = maxAge
    }
  }

  /// The lines, each with its line feed. Callers write them out and empty it when it is long.
  package var bytes: [UInt8] = []

  package init(capacity: Int = 0) { bytes.reserveCapacity(capacity) }

  /// Appends a line.
  /// - Parameters:
  ///   - header: what the entry has besides its bytes.
  ///   - key: its key.
  ///   - value: its value; ignored unless the entry is a put.
  ///   - hash: its validator hash, empty for none.
  ///   - labels: its labels.
  package mutating func append(
    _ header: Header, key: RawSpan, value: RawSpan, hash: RawSpan, labels: [[UInt8]]
  ) {
    literal("{")
    if let sequence = header.sequence {
      literal("\"seq\":")
      decimal(sequence)
      literal(",")
    }
    if let operationID = header.operationID {
      literal("\"op_id\":")
      text(Array(operationID.utf8).rawSpan)
      literal(",")
    }
    switch header.operation {
    case .put: literal("\"op\":\"put\",")
    case .delete: literal("\"op\":\"delete\",")
    case .touch: literal("\"op\":\"touch\",")
    }
    field("key", key)
    if header.operation == .put {
      literal(",")
      field("value", value)
    }
    if !hash.isEmpty {
      literal(",")
      field("hash", hash)
    }
    if !labels.isEmpty { array(labels) }
    tail(header)
    literal("}\n")
  }

  private mutating func tail(_ header: Header) {
    if let time = header.time {
      literal(",\"time\":\"")
      time.appendRFC3339(to: &bytes)
      literal("\"")
    }
    if let maxAge = header.maxAge {
      literal(",\"max_age\":")
      decimal(UInt64(maxAge))
    }
    if header.entryClass == .cache { literal(",\"class\":\"cache\"") }
  }

  private mutating func array(_ labels: [[UInt8]]) {
    literal(",\"labels\":[")
    for (index, label) in labels.enumerated() {
      if index > 0 { literal(",") }
      text(label.rawSpan)
    }
    literal("]")
  }

  /// Values beyond this become base64 when that is shorter, so that none outgrows a line.
  private static var longText: Int { 1 << 20 }

  /// Appends a field as text or base64.
  private mutating func field(_ name: String, _ content: RawSpan) {
    literal("\"")
    literal(name)
    if let count = JSONText.escapedCount(content),
      count <= max(Self.longText, Base64.encodedCount(content.byteCount))
    {
      literal("\":\"")
      JSONText.append(content, escapedCount: count, to: &bytes)
    } else {
      literal("_base64\":\"")
      Base64.encode(content, into: &bytes)
    }
    literal("\"")
  }

  private mutating func text(_ content: RawSpan) {
    literal("\"")
    if let count = JSONText.escapedCount(content) {
      JSONText.append(content, escapedCount: count, to: &bytes)
    } else {
      let repaired = Array(String(decoding: [UInt8](copying: content), as: UTF8.self).utf8)
      JSONText.append(
        repaired.rawSpan, escapedCount: JSONText.escapedCount(repaired.rawSpan) ?? 0, to: &bytes)
    }
    literal("\"")
  }

  private mutating func decimal(_ value: UInt64) {
    bytes.append(contentsOf: String(value).utf8)
  }

  private mutating func literal(_ text: String) {
    bytes.append(contentsOf: text.utf8)
  }
}
