public import TidemarkEngine

/// Everything that a store knows about a key: who wrote it, when, and why it still takes space.
public struct Explanation: Sendable, Hashable {
  /// One version of the key that is on the disk.
  public struct Version: Sendable, Hashable {
    /// The entry's sequence.
    public var sequence: UInt64
    /// The operation of the entry.
    public var kind: Entry.Kind
    /// When it was committed.
    public var commitTime: Timestamp
    /// The replica and sequence of another store that wrote the entry first; nil for this store.
    public var origin: Origin?
    /// The value's length in bytes.
    public var valueLength: Int
    /// The file that holds the entry, relative to the store's directory.
    public var file: String
    /// Where the entry's frame begins in the file, in bytes.
    public var offset: Int
    /// Whether the entry is known to be on the disk.
    public var isDurable: Bool
    /// Why the version is still on the disk.
    public var reason: Reason
  }

  /// Why a version is still on the disk.
  public enum Reason: Sendable, Hashable {
    /// It is the key's newest version, or in a view the newest up to the view's sequence.
    case newest
    /// The retention keeps it, as of the last compaction.
    case retention
    /// A view that is open at this sequence shows it.
    case view(UInt64)
    /// The next compaction that reaches it drops it.
    case awaitsCompaction
  }

  /// The key.
  public var key: Key
  /// Whether the key is there now.
  public var isPresent: Bool
  /// The newest entry, without its value.
  public var newest: Entry
  /// The versions that are on the disk, newest first; the newest of them when there are many.
  public var versions: [Version]
  /// Whether there are older versions than those in ``versions``.
  public var hasMore: Bool
}

extension StoreReader {
  /// The facts known about a key.
  /// - Parameters:
  ///   - key: the key.
  ///   - limit: most versions to list, at least 1: a key may have millions.
  /// - Returns: nil when no entry of the key is kept, not even a delete.
  public func explain(
    _ key: some BytesConvertible, limit: Int = 1000
  ) throws(TidemarkError) -> Explanation? {
    let source = source
    let engine = source.engine
    let view = try source.pinned()
    let status = try engine.status()
    var walk = try key.withBytes { (key) throws(TidemarkError) in
      try VersionWalk(engine.reader, ofKey: key, upTo: view.sequence)
    }
    var upcoming = try walk.next()
    guard let newest = upcoming else { return nil }
    var versions: [Explanation.Version] = []
    while let entry = upcoming, versions.count < max(1, limit) {
      versions.append(try Explanation.Version(entry, successor: versions.last?.sequence, status))
      upcoming = try walk.next()
    }
    return Explanation(
      key: Key(newest.key), isPresent: !newest.head.kind.removes,
      newest: try source.entry(newest, values: false, walks: true), versions: versions,
      hasMore: upcoming != nil)
  }
}

extension Explanation.Version {
  /// - Parameter successor: the sequence of the key's next newer version; nil for the newest.
  init(_ entry: LogEntry, successor: UInt64?, _ status: EngineStatus) throws(TidemarkError) {
    var reason = Explanation.Reason.newest
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
      commitTime: HybridTime(entry.head.commitTime).timestamp, origin: origin.map { Origin($0) },
      valueLength: entry.head.valueLength, file: entry.segment.fileName,
      offset: entry.front.offset, isDurable: entry.sequence <= status.durableSequence,
      reason: reason)
  }
}
