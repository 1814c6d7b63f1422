/// The owner of what readers see of a store (``ReadState``): the index, the segments of the log,
/// staged entries that are not written yet, and which sequences are visible and durable.
///
/// Readers take its lock, `reading`, briefly. ``LogWriter`` changes the state while it holds the
/// writer's lock; whoever needs both locks takes the writer's first.
@usableFromInline
package final class Reader: StateOwner {
  package let store: StoreContext
  let caches: LogCaches
  package let hotCache: HotCache
  /// Decoded objects of collections.
  package let objects: ObjectCache
  let creations = KnownCreations()
  let reading: Lock<ReadState>
  /// Whether the store is neither closed nor suspended, for reads that take no lock.
  let isOpen = AtomicFlag()
  /// Counts how often the state was read again from the disk; changed under the lock.
  let reopenCount = AtomicCounter()
  /// The writer, which owns this reader; weak, so that they do not keep each other.
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

  package var entries: LogEntries { LogEntries(reader: self) }
  package var history: LogHistory { LogHistory(reader: self) }

  /// Sets the writer of the log; called once, when that is made.
  func follow(_ tail: any LogTail) { self.tail.withLock { $0.tail = tail } }

  /// Writes what is staged, and calls `body` under the writer's lock, which must not be held yet.
  func withAllInLog(
    mayCompress: Bool = false, _ body: () throws(TidemarkError) -> Void = {}
  ) throws(TidemarkError) {
    guard let tail = tail.withLock({ $0.tail }) else { return try body() }
    try tail.withAllInLog(mayCompress: mayCompress, body)
  }

  /// Writes staged entries, so that the segments hold everything visible: only they are read.
  func writeStagedForReading() throws(TidemarkError) {
    guard reading.withLock({ !$0.staged.isEmpty || $0.singleInFlight != nil }) else { return }
    try withAllInLog(mayCompress: true)
  }

  /// Calls `body` under the lock. If it meets a damaged run, the index is rebuilt once and `body`
  /// called again. Not for callers that hold the writer's lock, which rebuilding takes.
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
          // The readers' lock is free here: the writer's comes first.
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

  /// How often the state was read again from the disk: sequences may name other entries since.
  package var openings: UInt64 { reopenCount.value }
  package var storeID: [UInt8] { manifest.storeID }
  package var replicaID: [UInt8] { manifest.replicaID }
  /// The highest sequence that readers see.
  package var lastSequence: UInt64 { reading.withLock { $0.visible } }
  /// The highest sequence known to be on the disk.
  package var durableSequence: UInt64 { reading.withLock { $0.durable } }
  /// How many keys the index has; for estimates: it never throws, and damage may make it wrong.
  package var liveKeys: Int { reading.withLock { $0.index.liveKeys } }
  package var isClosed: Bool { reading.withLock { $0.isClosed } }
  /// Whether the store has let go of its files until it is resumed.
  package var isSuspended: Bool { reading.withLock { $0.isSuspended } }
  var manifest: Manifest { reading.withLock { $0.manifest } }
  var segments: [Segment] { reading.withLock { $0.segments } }

  /// Whether an entry was lost in damage that is on record.
  func isDamaged(_ sequence: UInt64) -> Bool {
    reading.withLock { $0.manifest.damage(at: sequence) != nil }
  }

  var snapshot: LogSnapshot { reading.withLock { LogSnapshot($0) } }

  /// Whether everything up to a sequence of an epoch is on the disk.
  package func isDurable(_ sequence: UInt64, of epoch: UInt64) -> Bool {
    reading.withLock { sequence <= $0.durable && $0.hasKept(sequence, of: epoch) }
  }

  /// Whether a segment is in the log. If compaction has replaced it, errors of it mean nothing.
  func isCurrent(_ segment: Segment) -> Bool {
    reading.withLock { read in read.segments.contains { $0 === segment } }
  }
}

/// The writer of a log, as far as readers need it.
protocol LogTail: AnyObject, Sendable {
  /// Writes what is staged, and calls `body` with the writer's lock held.
  func withAllInLog(
    mayCompress: Bool, _ body: () throws(TidemarkError) -> Void
  ) throws(TidemarkError)
}

private struct LogTailReference: Sendable { weak var tail: (any LogTail)? }

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
  /// Compactions keep deletes above this sequence, for those who follow the log.
  let deletesKeptAbove: UInt64

  init(_ read: borrowing ReadState) {
    manifest = read.manifest
    segments = read.segments
    usage = read.usage
    leftAlone = read.leftAlone
    visible = read.visible
    durable = read.durable
    pins = read.views.keys.sorted()
    deletesKeptAbove = read.deletesKeptAbove
  }

  /// Whether open views, or damage (which stops dropping), keep superseded cached data.
  var keepsCached: Bool { !pins.isEmpty || !manifest.damage.isEmpty }

  /// Bytes of the segments on the disk.
  var usedBytes: Int { segments.reduce(0) { $0 + $1.usedLength() } }

  /// The lowest state that an open view needs, or the next opening if a power cut comes now.
  var neededFloor: UInt64 {
    if PlantedBug.isOn(.viewsForgotten) { return durable }
    return min(pins.first ?? .max, durable)
  }
}
