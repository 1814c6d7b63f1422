/// The owner of what readers see of a store: the index, the segments of the log, entries that are
/// on their way there, and what of that is visible and durable.
///
/// Readers take its lock briefly. Those who change the log hold the writer's lock meanwhile and say
/// here what has changed; whoever needs both takes the writer's first.
@usableFromInline
package final class Reader: StateOwner {
  package let store: StoreContext
  let caches: LogCaches
  let hotCache: HotCache
  /// Decoded objects, which take turns with decoded blocks in what the hot cache leaves.
  package let objects: ObjectCache
  let creations = KnownCreations()
  let reading: Lock<ReadState>
  /// Whether the store is neither closed nor suspended, for reads that take no lock.
  let isOpen = AtomicFlag()
  /// Counts up when the store is read anew from the disk.
  let opening = AtomicCounter()
  private let tail = Lock(LogTailReference())

  init(_ store: StoreContext, _ opened: Opened) {
    self.store = store
    caches = store.caches
    let configuration = store.configuration
    hotCache = HotCache(limitBytes: configuration.hotCacheBytes, seed: opened.manifest.hashSeed)
    objects = ObjectCache(limitBytes: configuration.objectBytes(beside: 0))
    reading = Lock(ReadState(opened))
    isOpen.isSet = true
  }

  /// Entries of the log, many at a time.
  package var entries: LogEntries { LogEntries(reader: self) }
  /// The log in the order of time.
  package var history: LogHistory { LogHistory(self) }

  /// Sets who writes the log.
  func follow(_ tail: any LogTail) { self.tail.withLock { $0.tail = tail } }

  /// Calls `body` once all that is visible is in the log, while nobody writes.
  func withAllInLog(
    mayCompress: Bool = false, _ body: () throws(TidemarkError) -> Void = {}
  ) throws(TidemarkError) {
    guard let tail = tail.withLock({ $0.tail }) else { return try body() }
    try tail.withAllInLog(mayCompress: mayCompress, body)
  }

  /// Hands staged entries to the kernel, so that the log can be read to its end.
  func writeStagedForReading() throws(TidemarkError) {
    guard reading.withLock({ !$0.staged.isEmpty || $0.singleInFlight != nil }) else { return }
    try withAllInLog(mayCompress: true)
  }

  /// Calls `body` under the lock; makes the index anew when a run of it is damaged.
  func withIndex<R>(
    _ body: (inout ReadState) throws(IndexOrStoreError) -> R
  ) throws(TidemarkError) -> R {
    var attempt = 0
    while true {
      do throws(IndexOrStoreError) {
        return try reading.withLock { (read: inout ReadState) throws(IndexOrStoreError) -> R in
          do throws(TidemarkError) { try read.checkReadable() } catch { throw .store(error) }
          return try body(&read)
        }
      } catch {
        switch error {
        case .store(let error): throw error
        case .index(let error):
          attempt += 1
          guard attempt == 1 else { throw TidemarkError(error) }
          try withAllInLog { () throws(TidemarkError) in try rebuildIndex(after: error) }
        }
      }
    }
  }

  /// Makes sure that the store can be read.
  /// - Throws: `closed`, `suspended`.
  package func checkReadable() throws(TidemarkError) {
    if isOpen.isSet { return }
    try reading.withLock { (read: inout ReadState) throws(TidemarkError) in
      try read.checkReadable()
    }
  }

  /// How often the store was read anew from the disk, after which sequences may name other entries.
  package var openings: UInt64 { opening.value }
  package var storeID: [UInt8] { manifest.storeID }
  package var replicaID: [UInt8] { manifest.replicaID }
  /// The highest sequence that readers see.
  package var lastSequence: UInt64 { reading.withLock { $0.visible } }
  /// The highest sequence known to be on the disk.
  package var durableSequence: UInt64 { reading.withLock { $0.durable } }
  /// How many keys there are, as far as the index knows; for estimates, and never refused.
  package var liveKeys: Int { reading.withLock { $0.index.liveKeys } }
  /// Whether the store was closed.
  package var isClosed: Bool { reading.withLock { $0.isClosed } }
  /// Whether the store has let go of its files until it is resumed.
  package var isSuspended: Bool { reading.withLock { $0.isSuspended } }
  var manifest: Manifest { reading.withLock { $0.manifest } }
  var segments: [Segment] { reading.withLock { $0.segments } }

  /// The segment that covers a sequence; nil for what compaction dropped with its segment.
  func segment(covering sequence: UInt64) -> Segment? {
    reading.withLock { $0.segment(covering: sequence) }
  }

  /// Whether an entry was lost in damage that is on record.
  func isDamaged(_ sequence: UInt64) -> Bool {
    reading.withLock { $0.manifest.damage(at: sequence) != nil }
  }

  /// The log and what is known of its segments, at one moment.
  var snapshot: LogSnapshot { reading.withLock { LogSnapshot($0) } }

  /// Whether everything up to a sequence of an epoch is on the disk.
  package func isDurable(_ sequence: UInt64, of epoch: UInt64) -> Bool {
    reading.withLock { sequence <= $0.durable && $0.hasKept(sequence, of: epoch) }
  }

  /// Whether a segment still belongs to the store: compaction may have replaced it.
  func isCurrent(_ segment: Segment) -> Bool {
    reading.withLock { read in read.segments.contains { $0 === segment } }
  }
}

/// The writer of a log, as its readers know it.
protocol LogTail: AnyObject, Sendable {
  /// Calls `body` once all that is visible is in the log, while nobody writes.
  func withAllInLog(
    mayCompress: Bool, _ body: () throws(TidemarkError) -> Void
  ) throws(TidemarkError)
}

private struct LogTailReference: Sendable {
  weak var tail: (any LogTail)?
}

/// The log and what is known of its segments, at one moment.
struct LogSnapshot: Sendable {
  let manifest: Manifest
  /// By first sequence.
  let segments: [Segment]
  let usage: SpaceUsage
  /// Segments that a compaction has left as they are, since they would get no smaller.
  let leftAlone: Set<UInt64>
  let visible: UInt64
  let durable: UInt64
  /// The sequences at which views are open.
  let pins: [UInt64]
  /// Deletes above this sequence stay, whatever else of the history goes.
  let deletesKeptAbove: UInt64
  let isClosed: Bool

  init(_ read: borrowing ReadState) {
    manifest = read.manifest
    segments = read.segments
    usage = read.usage
    leftAlone = read.notes.leftAlone
    visible = read.visible
    durable = read.durable
    pins = read.views.sequences
    deletesKeptAbove = read.deletesKeptAbove
    isClosed = read.isClosed
  }

  /// Whether open views or damage keep cached data that was given up.
  var keepsCached: Bool { !pins.isEmpty || !manifest.damage.isEmpty }

  /// Bytes of the segments on the disk.
  var usedBytes: Int { segments.reduce(0) { $0 + $1.usedLength() } }

  /// The least sequence that a view, or the retention, still needs.
  var neededFloor: UInt64 {
    if PlantedBug.isOn(.viewsForgotten) { return durable }
    return min(pins.first ?? .max, durable)
  }

  /// What is counted of a segment; of one that was not counted nothing is known.
  func usage(of segment: Segment) -> SpaceUsage.Row? { usage.rows[segment.id] }
}
