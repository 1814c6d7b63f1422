package import TidemarkEngine

/// Writes entries as lines of NDJSON, which an import reads back to the same entries.
///
/// Keys, values, hashes and labels are written as text when they are UTF-8, else as base64; an
/// entry with labels of both kinds has two lists of them.
package struct NDJSONWriter: Sendable {
  /// The parts of an entry besides its bytes.
  package struct Header: Sendable, Hashable {
    /// The operation of the entry.
    package var operation: DecodedLine.Operation
    /// The owner of the entry.
    package var entryClass: EntryAttributes.Class
    /// Its sequence, for a history.
    package var sequence: UInt64?
    /// Its operation id (replica.sequence), for a history.
    package var operationID: String?
    /// Its own time.
    package var time: Timestamp?
    /// How long it stays valid, in seconds.
    package var maxAge: UInt32?
    /// The attachment that it names.
    package var attachment: AttachmentID?

    package init(
      _ operation: DecodedLine.Operation, entryClass: EntryAttributes.Class = .owned,
      sequence: UInt64? = nil, operationID: String? = nil, time: Timestamp? = nil,
      maxAge: UInt32? = nil, attachment: AttachmentID? = nil
    ) {
      self.operation = operation
      self.entryClass = entryClass
      self.sequence = sequence
      self.operationID = operationID
      self.time = time
      self.maxAge = maxAge
      self.attachment = attachment
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
      text(operationID)
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
    array(labels)
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
    if let attachment = header.attachment {
      literal(",\"attachment\":")
      text(attachment.text)
    }
    if header.entryClass == .cache { literal(",\"class\":\"cache\"") }
  }

  private mutating func array(_ labels: [[UInt8]]) {
    var texts = 0
    for label in labels {
      guard let count = JSONText.escapedCount(label.rawSpan) else { continue }
      literal(texts == 0 ? ",\"labels\":[\"" : ",\"")
      JSONText.append(label.rawSpan, escapedCount: count, to: &bytes)
      literal("\"")
      texts += 1
    }
    if texts > 0 { literal("]") }
    guard texts < labels.count else { return }
    var isFirst = true
    for label in labels where JSONText.escapedCount(label.rawSpan) == nil {
      literal(isFirst ? ",\"labels_base64\":[\"" : ",\"")
      Base64.encode(label.rawSpan, into: &bytes)
      literal("\"")
      isFirst = false
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

  private mutating func text(_ content: String) {
    literal("\"")
    let content = Array(content.utf8)
    if let count = JSONText.escapedCount(content.rawSpan) {
      JSONText.append(content.rawSpan, escapedCount: count, to: &bytes)
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
