internal import Tidemark
internal import TidemarkEngine
internal import TidemarkNDJSON

/// Writes entries as lines of NDJSON, with bounded memory.
struct Exporter {
  private static let flushBytes = 256 << 10
  private let console: Console
  private let store: Store
  private let replica: String
  private let library: LibraryKeyOptions
  private var writer = NDJSONWriter(capacity: Exporter.flushBytes)
  private(set) var count = 0
  private var attachments: AttachmentExport

  /// - Parameter attachments: the directory for the content of attachments; nil leaves it out.
  init(
    _ console: Console, _ store: Store, _ library: LibraryKeyOptions, attachments: String? = nil
  ) throws {
    self.library = library
    self.attachments = try AttachmentExport(console, store, attachments)
    self.console = console
    self.store = store
    replica = store.engine.reader.replicaID.hexadecimal
  }

  /// Writes one state in key order.
  mutating func writeState(_ query: EntryQuery, at sequence: UInt64?) throws {
    var rows = try store.view(at: sequence).entries(query)
    var progress = Progress(
      console, "exporting", unit: .entries, total: sequence == nil ? try store.count() : nil)
    defer { progress.finish() }
    while let entry = try rows.next() {
      guard library.shows(entry.key.bytes, prefix: query.prefix.bytes) else { continue }
      // The newest entry of a key may be a touch; the state is that of a put.
      let header = NDJSONWriter.Header(
        .put, entryClass: entry.storageClass == .cache ? .cache : .owned, time: entry.time,
        maxAge: entry.maxAgeSeconds, attachment: entry.attachment?.engineID)
      try append(
        header, key: entry.key.bytes.rawSpan, value: entry.value.rawSpan, hash: entry.hash,
        labels: entry.labels.map(\.bytes))
      try drain()
      progress.update(count)
    }
    try flush()
  }

  /// Writes every entry that is kept, in sequence order.
  mutating func writeHistory(_ query: EntryQuery, until: UInt64?) throws {
    let engine = store.engine
    let (prefix, labels) = (query.prefix.bytes, query.labels.query)
    let last = until ?? engine.reader.lastSequence
    // A view says when what is asked for is no longer kept, and keeps what is.
    let view = try engine.reader.view(at: last)
    var cursor = LogCursor(engine.reader, from: 1, through: view.sequence)
    var progress = Progress(
      console, "exporting", unit: .entries, total: Int(clamping: view.sequence))
    defer { progress.finish() }
    while let entry = try cursor.next() {
      let key = entry.key
      guard key.starts(with: prefix), library.shows(key, prefix: prefix) else { continue }
      let info = try engine.reader.info(entry)
      guard labels.isEmpty || labels.matches(info.labels) else { continue }
      try append(entry, info)
      try drain()
      progress.update(Int(clamping: entry.sequence))
    }
    try flush()
  }

  private mutating func append(
    _ entry: LogEntry, _ info: EntryInfo
  ) throws {
    // The attributes are the entry's own, not those that a touch inherits.
    let attributes = try entry.attributes()
    var header = NDJSONWriter.Header(DecodedLine.Operation(info.kind), attributes: attributes)
    header.sequence = info.sequence
    header.operationID =
      attributes.origin.map { EntryOrigin($0).text } ?? "\(replica).\(info.sequence)"
    let isPut = info.kind == .put
    let value = isPut ? try store.engine.value(of: info) : []
    try append(
      header, key: entry.key.rawSpan, value: value.rawSpan, hash: attributes.hash,
      labels: isPut ? info.labels : [])
  }

  private mutating func append(
    _ header: NDJSONWriter.Header, key: RawSpan, value: RawSpan, hash: [UInt8]?,
    labels: [[UInt8]]
  ) throws {
    if let attachment = header.attachment { try attachments.write(attachment) }
    let hash = hash ?? []
    writer.append(header, key: key, value: value, hash: hash.rawSpan, labels: labels)
    count += 1
  }

  /// Says which attachments are not in the output.
  func warnOfAttachments() { attachments.warn() }

  private mutating func drain() throws(ToolError) {
    if writer.bytes.count >= Self.flushBytes { try flush() }
  }

  private mutating func flush() throws(ToolError) {
    try console.output.write(json: writer.bytes)
    writer.bytes.removeAll(keepingCapacity: writer.bytes.count <= Self.flushBytes * 2)
  }
}

extension NDJSONWriter.Header {
  /// The fields of a line besides bytes and labels.
  init(_ operation: DecodedLine.Operation, attributes: EntryAttributes) {
    self.init(
      operation, entryClass: attributes.entryClass == .cache ? .cache : .owned,
      time: attributes.time, maxAge: attributes.maxAge,
      attachment: operation == .put ? attributes.attachment : nil)
  }
}

extension DecodedLine.Operation {
  /// The operation of an import that comes nearest; an eviction reads as the key being gone.
  init(_ kind: EntryKind) {
    self =
      switch kind {
      case .put, .record: .put
      case .delete, .evict: .delete
      case .touch: .touch
      }
  }
}

extension Engine {
  /// The value of an entry; empty when it has none.
  func value(of info: EntryInfo) throws(TidemarkError) -> [UInt8] {
    guard !info.kind.removes, info.valueLength > 0 else { return [] }
    return try reader.withValue(of: info.valueSequence) { (value, _) throws(TidemarkError) in
      [UInt8](copying: value)
    }
  }
}
