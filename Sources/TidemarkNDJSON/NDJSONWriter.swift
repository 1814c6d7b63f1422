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

  private var json: JSONWriter

  /// The lines, each with its line feed. Callers write them out and empty it when it is long.
  package var bytes: [UInt8] {
    get { json.bytes }
    _modify { yield &json.bytes }
  }

  package init(capacity: Int = 0) { json = JSONWriter(capacity: capacity) }

  /// Values beyond this become base64 when that is shorter, so that none outgrows a line.
  private static var longText: Int { 1 << 20 }

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
    json.beginObject()
    if let sequence = header.sequence {
      json.name("seq")
      json.number(sequence)
    }
    if let operationID = header.operationID { member("op_id", operationID) }
    switch header.operation {
    case .put: member("op", "put")
    case .delete: member("op", "delete")
    case .touch: member("op", "touch")
    }
    json.content("key", key, shortText: Self.longText)
    if header.operation == .put { json.content("value", value, shortText: Self.longText) }
    if !hash.isEmpty { json.content("hash", hash, shortText: Self.longText) }
    json.contents("labels", labels)
    if let time = header.time {
      json.name("time")
      json.plain { time.appendRFC3339(to: &$0) }
    }
    if let maxAge = header.maxAge {
      json.name("max_age")
      json.number(UInt64(maxAge))
    }
    if let attachment = header.attachment { member("attachment", attachment.text) }
    if header.entryClass == .cache { member("class", "cache") }
    json.endObject()
    json.endLine()
  }

  private mutating func member(_ name: StaticString, _ text: String) {
    json.name(name)
    json.text(text)
  }
}
