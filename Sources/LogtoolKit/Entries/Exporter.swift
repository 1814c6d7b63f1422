internal import Tidemark
internal import TidemarkEngine
internal import TidemarkNDJSON

/// Writes entries as lines of NDJSON, with bounded memory.
struct Exporter {
  private static let flushBytes = 256 << 10
  private let console: Console
  private let engine: Engine
  private let replica: String
  private var writer = NDJSONWriter(capacity: Exporter.flushBytes)
  private(set) var count = 0
  private var attachments: AttachmentExport

  /// - Parameter attachments: the directory for the content of attachments; nil leaves it out.
  init(_ console: Console, _ engine: Engine, attachments: String? = nil) throws {
    self.attachments = try AttachmentExport(console, engine, attachments)
    self.console = console
    self.engine = engine
    replica = engine.replicaID.hexadecimal
  }

  /// Writes one state in key order.
  mutating func writeState(_ query: ScanQuery, at sequence: UInt64?) throws {
    let scan = EngineScan(engine, query, view: try engine.view(at: sequence))
    let loader = EntryLoader(engine)
    var progress = Progress(
      console, "exporting", unit: .entries, total: sequence == nil ? engine.liveKeys : nil)
    defer { progress.finish() }
    while true {
      let rows = try scan.nextPage(upTo: EntryLoader.rows)
      if rows.isEmpty { break }
      try loader.load(rows, values: true) { entry in
        // The newest entry of a key may be a touch; the state is that of a put.
        try append(
          NDJSONWriter.Header(.put, attributes: entry.info.attributes), key: entry.key.rawSpan,
          value: entry.value.rawSpan, entry.info)
        try drain()
      }
      progress.update(count)
    }
    try flush()
  }

  /// Writes every entry that is kept, in sequence order.
  mutating func writeHistory(
    prefix: [UInt8], labels: LabelQuery, until: UInt64?
  ) throws {
    let last = until ?? engine.lastSequence
    // A view says when what is asked for is no longer kept, and keeps what is.
    let view = try engine.view(at: last)
    var cursor = LogCursor(engine, from: 1, through: view.sequence)
    var progress = Progress(
      console, "exporting", unit: .entries, total: Int(clamping: view.sequence))
    defer { progress.finish() }
    while let entry = try cursor.next() {
      guard entry.key.starts(with: prefix) else { continue }
      let info = try engine.info(entry)
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
    header.operationID = attributes.origin?.text ?? "\(replica).\(info.sequence)"
    var own = info
    own.attributes = attributes
    if info.kind != .put { own.labels = [] }
    let value = info.kind == .put ? try engine.value(of: info) : []
    try append(header, key: entry.key.rawSpan, value: value.rawSpan, own)
  }

  private mutating func append(
    _ header: NDJSONWriter.Header, key: RawSpan, value: RawSpan, _ info: EntryInfo
  ) throws {
    if let attachment = header.attachment { try attachments.write(attachment) }
    let hash = info.attributes.hash ?? []
    writer.append(header, key: key, value: value, hash: hash.rawSpan, labels: info.labels)
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
