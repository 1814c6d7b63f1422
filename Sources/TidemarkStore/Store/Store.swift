internal import TidemarkEngine

/// An event-sourced database in a directory on this machine.
///
/// Every put and delete is an entry in an append-only log; what is read is derived from it.
///
/// ```swift
/// let store = try await Store.open(at: "notes.tidemark")
/// try await store.put("note/1", "Buy milk", labels: ["inbox"])
/// let text = try store.value(forKey: "note/1")
/// try await store.close()
/// ```
///
/// Any number of threads and tasks may use one store at a time. Writes are async and never block
/// the pool that tasks run on; ``blocking`` has their synchronous forms. Reads are synchronous:
/// they are answered from memory or by one short read.
///
/// A store that is let go without ``close()`` closes itself, errors unheard. Rows, views and
/// changes of a store keep it open.
public final class Store: Sendable {
  package let engine: Engine
  /// Whether work that blocks may go to threads of the store's own.
  package let usesThreads: Bool
  /// Nil where callers do all the work themselves, or nothing can be written.
  let commits: CommitThread?
  let background: UpkeepMember?
  let compactor: CompactionThread?
  package let hub: CommitHub
  package let caches: any CacheParticipant
  /// All parts that other modules have brought along.
  let participants: [any StoreParticipant]
  /// Held while the store is being closed: a second one who closes waits for the first.
  let closing = Lock(())

  /// - Parameter participants: those besides the caches.
  package init(
    _ engine: Engine, _ configuration: Configuration, caches: any CacheParticipant,
    _ participants: [any StoreParticipant]
  ) {
    self.engine = engine
    self.caches = caches
    self.participants = [caches] + participants
    hub = CommitHub(engine)
    usesThreads = configuration.usesThreads
    let hasThreads = usesThreads && configuration.canWrite
    commits = hasThreads ? CommitThread(engine) : nil
    compactor = hasThreads ? CompactionThread(engine) : nil
    background =
      hasThreads ? UpkeepMember(configuration.upkeep ?? StoreUpkeep(), engine, compactor) : nil
  }

  deinit {
    // Not joined: this may be one of the threads that it would wait for.
    for participant in participants { participant.close(waits: false) }
    background?.stop()
    compactor?.stop()
    commits?.stop()
    try? engine.close()
  }

  /// The participant of a type. Its module asks once and keeps it where that is on a hot path.
  package func participant<Participant: StoreParticipant>() -> Participant {
    for case let participant as Participant in participants { return participant }
    preconditionFailure("the store was opened without \(Participant.self)")
  }

  /// How many threads of its own it has now; for tests.
  package var threads: Int {
    [background?.isStarted, commits?.isStarted, engine.writer.packer?.isStarted].count {
      $0 == true
    }
  }

  /// The synchronous forms of everything that is async, for programs without tasks; they block
  /// the thread that calls them.
  public var blocking: Blocking { Blocking(store: self) }

  /// The store's id, 16 bytes; copies share it.
  public var storeID: [UInt8] { engine.reader.storeID }

  /// The highest sequence that readers see; 0 in an empty store.
  public var lastSequence: UInt64 { engine.reader.lastSequence }

  /// The highest sequence known to be on the disk.
  public var durableSequence: UInt64 { engine.reader.durableSequence }

  /// Where a follower that has seen everything stands now.
  public var cursor: Cursor {
    get throws(TidemarkError) { try engine.reader.bounds().cursor }
  }
}
