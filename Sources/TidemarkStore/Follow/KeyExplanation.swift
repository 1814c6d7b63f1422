public import TidemarkEngine

/// Everything that a store knows about a key: who wrote it, when, and why it still takes space.
public struct KeyExplanation: Sendable, Hashable {
  /// One version of the explained key that is still on the disk.
  public struct Version: Sendable, Hashable {
    /// The sequence of the entry that holds this version.
    public var sequence: UInt64
    /// The operation that wrote this version: a put, delete, touch or eviction.
    public var kind: Entry.Kind
    /// When this version was committed, by the store's clock.
    public var commitTime: Timestamp
    /// The replica that wrote this version first, and its sequence there; nil when this store wrote
    /// it.
    public var origin: EntryOrigin?
    /// The length of this version's value, in bytes.
    public var valueLength: Int
    /// The log file that holds this version, relative to the store's directory.
    public var file: String
    /// The offset in ``file``, in bytes, at which the frame with this version begins.
    public var offset: Int
    /// Whether this version is known to be on the disk, so that it survives a power cut.
    public var isDurable: Bool
    /// The reason why compaction has not dropped this version.
    public var reason: Reason
  }

  /// The reason why a version of a key is still on the disk.
  @nonexhaustive
  public enum Reason: Sendable, Hashable {
    /// The version is the newest of its key, or in a view the newest up to the view's sequence.
    case newest
    /// The store's retention keeps the version, as of the last compaction.
    case retention
    /// An open view at this sequence shows the version.
    case view(UInt64)
    /// Nothing keeps the version: the next compaction that rewrites its file drops it.
    case awaitsCompaction
  }

  /// The key that is explained.
  public var key: Key
  /// Whether the key has a value now; false after a delete.
  public var isPresent: Bool
  /// The key's newest entry, without its value; a delete counts.
  public var newest: Entry
  /// The key's versions on the disk, newest first, up to the limit of the call.
  public var versions: [Version]
  /// Whether there are older versions than those in ``versions``.
  public var hasMore: Bool
}

extension StoreReader {
  /// Tells everything that the store knows about a key, and why its versions take space.
  /// - Parameters:
  ///   - key: the key.
  ///   - limit: most versions to list, at least 1: a key may have millions.
  /// - Returns: nil when no entry of the key is kept, not even a delete.
  public func explain(
    _ key: some BytesConvertible, limit: Int = 1000
  ) throws(TidemarkError) -> KeyExplanation? {
    let source = source
    let engine = source.engine
    let view = try source.pinned()
    let status = try engine.status()
    var walk = try key.withBytes { (key) throws(TidemarkError) in
      try VersionWalk(engine.reader, ofKey: key, upTo: view.sequence)
    }
    var upcoming = try walk.next()
    guard let newest = upcoming else { return nil }
    var versions: [KeyExplanation.Version] = []
    while let entry = upcoming, versions.count < max(1, limit) {
      versions.append(try KeyExplanation.Version(entry, successor: versions.last?.sequence, status))
      upcoming = try walk.next()
    }
    return KeyExplanation(
      key: Key(newest.key), isPresent: !newest.head.kind.removes,
      newest: try source.entry(newest, values: false, walks: true), versions: versions,
      hasMore: upcoming != nil)
  }
}

extension KeyExplanation.Version {
  /// - Parameter successor: the sequence of the key's next newer version; nil for the newest.
  init(_ entry: LogEntry, successor: UInt64?, _ status: EngineStatus) throws(TidemarkError) {
    var reason = KeyExplanation.Reason.newest
    if let successor {
      // States from this sequence to just before the successor's show the version. New views below
      // `historyFrom` are refused: only a view that is open already can still show it there.
      let pin = status.pins.first { entry.sequence <= $0 && $0 < successor }
      reason = successor <= status.manifest.historyFrom ? .awaitsCompaction : .retention
      if let pin { reason = .view(pin) }
    }
    let origin = try entry.attributes().origin
    self.init(
      sequence: entry.sequence, kind: Entry.Kind(entry.head.kind),
      commitTime: HybridTime(entry.head.commitTime).timestamp,
      origin: origin.map { EntryOrigin($0) },
      valueLength: entry.head.valueLength, file: entry.segment.fileName,
      offset: entry.front.offset, isDurable: entry.sequence <= status.durableSequence,
      reason: reason)
  }
}
