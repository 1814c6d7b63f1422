import Foundation
import Tidemark

/// The store by its public, blocking interface.
final class TidemarkEngine: BenchEngine, @unchecked Sendable {
  private let store: Store
  private let options: EngineOptions
  /// Made once, as a program holds its own.
  private let labels: [[EntryLabel]]
  /// Emptied and filled again, as other engines' batches are; of the one thread that loads.
  private var batch = WriteBatch()

  init(_ options: EngineOptions) throws {
    self.options = options
    labels = options.labels?.texts.map { [EntryLabel($0)] } ?? []
    let durability: Durability =
      switch options.level {
      case .async: .async
      case .buffered: .buffered
      case .durable: .durable
      }
    store = try Store.openBlocking(
      at: options.path,
      configuration: .init(durability: durability, cacheBytes: options.cacheBytes))
  }

  var settings: [String] {
    [
      "cacheBytes \(options.cacheBytes >> 20) MiB", "durability \(options.level.rawValue)",
      "retention everything, compaction with dropHistory", "labels of the entry",
      "store.blocking, withValue, scan",
    ]
  }

  private func labels(_ index: UInt32) -> [EntryLabel] {
    guard let labels = options.labels else { return [] }
    return self.labels[labels.number(index)]
  }

  func load(_ records: Records, _ range: Range<Int>) throws {
    batch.removeAll()
    for place in range {
      try batch.put(
        Lent(records.key(place)), records.value(place).bytes,
        labels: labels(records.indices[place]))
    }
    try store.blocking.write(batch)
  }

  func put(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, _ index: UInt32) throws {
    try store.blocking.put(Lent(key), value.bytes, labels: labels(index))
  }

  func delete(_ records: Records, _ range: Range<Int>) throws {
    batch.removeAll()
    for place in range { try batch.delete(Lent(records.key(place))) }
    try store.blocking.write(batch)
  }

  func flush() throws { try store.blocking.flush() }

  func reader() throws -> any BenchReader { TidemarkReader(store, options.labels) }

  func compact(dense: Bool) throws {
    try store.blocking.compact(dropHistory: true, dense: dense)
  }

  func snapshot() throws { try store.blocking.snapshot() }

  func close() throws { try store.blocking.close() }
}

/// Bytes that somebody else holds.
struct Lent: BytesConvertible {
  private let buffer: UnsafeRawBufferPointer

  init(_ buffer: UnsafeRawBufferPointer) { self.buffer = buffer }

  @inline(__always)
  func withBytes<R, E: Error>(_ body: (RawSpan) throws(E) -> R) throws(E) -> R {
    try body(buffer.bytes)
  }
}

private final class TidemarkReader: BenchReader {
  private let store: Store
  private let labels: [EntryLabel]

  init(_ store: Store, _ labels: Labels?) {
    self.store = store
    self.labels = labels?.texts.map { EntryLabel($0) } ?? []
  }

  func close() {}

  func get(_ key: UnsafeRawBufferPointer, _ check: inout Check) throws {
    _ = try store.withValue(forKey: Lent(key)) { value in
      Self.see(key, value, &check)
    }
  }

  @inline(__always)
  private static func see(_ key: UnsafeRawBufferPointer, _ value: RawSpan, _ check: inout Check) {
    guard let start = key.baseAddress else { return }
    value.withUnsafeBytes { check.see(start, $0.baseAddress, $0.count) }
  }

  private func scan(_ query: EntryQuery, _ check: inout Check) throws {
    try store.scan(query) { key, value in
      key.withUnsafeBytes { Self.see($0, value, &check) }
    }
  }

  func scan(from key: UnsafeRawBufferPointer, count: Int, _ check: inout Check) throws {
    try scan(EntryQuery(from: Key([UInt8](key)), limit: count), &check)
  }

  func documents(label: Int, _ check: inout Check) throws {
    try scan(EntryQuery(labels: LabelFilter(all: [labels[label]])), &check)
  }

  func whole(_ key: UnsafeRawBufferPointer, _ check: inout Check) throws {
    if let entry = try store.entry(forKey: Lent(key)) { Self.see(entry, &check) }
  }

  func wholeDocuments(label: Int, _ check: inout Check) throws {
    var rows = try store.entries(labels: LabelFilter(all: [labels[label]]))
    while let entry = try rows.next() { Self.see(entry, &check) }
  }

  private static func see(_ entry: Entry, _ check: inout Check) {
    entry.key.bytes.withUnsafeBytes { see($0, entry.value.span.bytes, &check) }
  }

  func keys(label: Int, _ check: inout Check) throws {
    let query = EntryQuery(labels: LabelFilter(all: [labels[label]]), values: false)
    try store.scan(query) { key, _ in
      key.withUnsafeBytes { key in
        if let start = key.baseAddress { check.see(start, key.count) }
      }
    }
  }
}
