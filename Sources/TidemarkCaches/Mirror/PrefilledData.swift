internal import TidemarkEngine
internal import TidemarkNDJSON

/// Data that ships with the program, to fill a cache before its first contact with a server. See
/// ``Cache/prefill(from:durability:)``.
public struct PrefilledData: Sendable, Hashable {
  /// Whether it is a store, and not a file of lines.
  let isStore: Bool
  let path: String
  let keyPrefix: [UInt8]
  /// The directory with the content of attachments.
  var attachments: String?

  /// Reads the data from a file of NDJSON as `logtool export` writes it, compressed with zstd or
  /// not.
  ///
  /// A line's `hash` is that of the item: with those of the server, the first sync fetches only
  /// what differs.
  /// - Parameters:
  ///   - path: of the file.
  ///   - keyPrefix: is taken off the keys; lines with other keys are passed over.
  ///   - attachments: the directory with the content of attachments, as `logtool export
  ///     --attachments` writes it; nil where lines name none.
  public static func lines(
    at path: String, keyPrefix: some BytesConvertible = "", attachments: String? = nil
  ) -> PrefilledData {
    PrefilledData(
      isStore: false, path: path, keyPrefix: Key(keyPrefix).bytes, attachments: attachments)
  }

  /// Reads the data from a store, which is not changed. Attachments are copied from it.
  /// - Parameters:
  ///   - path: its directory.
  ///   - keyPrefix: is taken off the keys; entries with other keys are passed over.
  public static func store(
    at path: String, keyPrefix: some BytesConvertible = ""
  ) -> PrefilledData {
    PrefilledData(isStore: true, path: path, keyPrefix: Key(keyPrefix).bytes)
  }

  struct Item {
    var key: [UInt8]
    var hash: [UInt8]
    var value: [UInt8]
    var labels: [EntryLabel]
    var maxAge: UInt32?
    var attachment: PrefilledAttachment?
    /// Whether a later line has taken the item out again.
    var isRemoval = false
  }

  /// Tells one version of the data from another.
  func collectionHash() throws(TidemarkError) -> [UInt8] {
    guard isStore else { return try LineFile(path).contentHash() }
    let store = try openStore()
    var writer = ByteWriter()
    writer.raw(store.engine.reader.replicaID)
    writer.u64(try store.cursor.epoch)
    writer.u64(store.lastSequence)
    return SHA256.hash(writer.bytes.rawSpan)
  }

  private func openStore() throws(TidemarkError) -> Store {
    var configuration = Store.Configuration(access: .readOnly)
    configuration.usesThreads = false
    let engine = try configuration.openEngine(at: path)
    return Store(engine, configuration, caches: CacheRegistry(engine, configuration), [])
  }

  /// Calls `body` with one item after the other.
  func forEach(_ body: (Item) throws(TidemarkError) -> Void) throws(TidemarkError) {
    guard isStore else { return try forEachLine(body) }
    let source = try openStore()
    var rows = try source.entries(EntryQuery(prefix: keyPrefix))
    while let entry = try rows.next() {
      let key = Array(entry.key.bytes.dropFirst(keyPrefix.count))
      guard !key.isEmpty, !ReservedKeys.contains(entry.key.bytes.rawSpan) else { continue }
      let id = entry.attachment?.engineID
      try body(
        Item(
          key: key, hash: entry.hash ?? Self.hash(entry.value, entry.labels, id),
          value: entry.value, labels: entry.labels, maxAge: entry.maxAgeSeconds,
          attachment: id.map { PrefilledAttachment(id: $0, place: .store(source)) }))
    }
  }

  private func forEachLine(
    _ body: (Item) throws(TidemarkError) -> Void
  ) throws(TidemarkError) {
    var file = try LineFile(path)
    var lines = DecodedLines()
    while let chunk = try file.next() {
      lines.removeAll()
      do throws(LineError) { try lines.append(chunk) } catch { throw file.describe(error) }
      for line in lines.lines where line.operation != .touch {
        if let item = item(line, of: lines) { try body(item) }
      }
    }
  }

  /// Nil for a key with another prefix.
  private func item(_ line: DecodedLine, of lines: borrowing DecodedLines) -> Item? {
    let key = [UInt8](copying: lines.bytes(line.key))
    guard key.count > keyPrefix.count, key.starts(with: keyPrefix),
      !ReservedKeys.contains(key.rawSpan)
    else { return nil }
    let value = [UInt8](copying: lines.bytes(line.value))
    let labels = lines.labelSets.labels(inSet: line.labelSet).map { EntryLabel($0) }
    let given = [UInt8](copying: lines.bytes(line.hash))
    return Item(
      key: Array(key.dropFirst(keyPrefix.count)),
      hash: given.isEmpty ? Self.hash(value, labels, line.attachment) : given, value: value,
      labels: labels, maxAge: line.maxAge,
      attachment: line.attachment.map {
        PrefilledAttachment(id: $0, place: .directory(attachments))
      }, isRemoval: line.operation == .delete)
  }

  /// The hash of an item that says none.
  private static func hash(
    _ value: [UInt8], _ labels: [EntryLabel], _ attachment: AttachmentID?
  ) -> [UInt8] {
    var writer = ByteWriter()
    writer.u64(XXH64.hash(value.rawSpan))
    for label in labels {
      writer.blob(label.bytes)
    }
    if let attachment { writer.raw(attachment.hash) }
    let sum = XXH64.hash(writer.bytes.rawSpan)
    var hash = ByteWriter()
    hash.u64(sum)
    return hash.bytes
  }
}
