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
/// Any number of threads and tasks may use one store at a time. Writes are async, and wait for a
/// sync without a thread of the pool that tasks run on; ``blocking`` has their synchronous forms.
/// Reads are synchronous: they are answered from memory or by one short read.
///
/// A store without ``close()`` closes itself with its last reference, and errors of that are lost.
/// Rows, views and changes of a store hold a reference to it.
public final class Store: Sendable {
  package let engine: Engine
  /// Whether work that blocks may go to threads of the store's own.
  package let usesThreads: Bool
  /// Syncs the log for tasks. It, `background` and `compactor` are nil in a store that cannot be
  /// written, and in one without threads, whose writers do all that is due themselves.
  let commits: CommitThread?
  /// Background syncs and index checkpoints, by a thread that stores may share.
  let background: UpkeepMember?
  let compactor: CompactionThread?
  /// Tells watchers which keys commits have written.
  package let hub: CommitHub
  package let caches: any CacheParticipant
  /// The caches and the parts that other modules have added.
  let participants: [any StoreParticipant]
  /// Held while the store is being closed: a second close returns only after the first.
  let closing = Lock(())

  /// - Parameter participants: all but the caches.
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
    // No thread is joined: the last reference may go on one of them, which would wait for itself.
    for participant in participants { participant.close(waits: false) }
    background?.stop()
    compactor?.stop()
    commits?.stop()
    // Nobody is left to hear of an error; the next opening recovers the store.
    try? engine.close()
  }

  /// The participant of a type, found by a search: hot paths keep the result.
  package func participant<Participant: StoreParticipant>() -> Participant {
    for case let participant as Participant in participants { return participant }
    preconditionFailure("the store was opened without \(Participant.self)")
  }

  /// How many threads for commits, upkeep and compression were started; for tests.
  package var threads: Int {
    [background?.isStarted, commits?.isStarted, engine.writer.packer?.isStarted].count {
      $0 == true
    }
  }

  /// The synchronous forms of everything that is async; they block the thread that calls them.
  public var blocking: Blocking { Blocking(store: self) }

  /// The store's id, 16 bytes. A copy of the store has the same id.
  public var storeID: [UInt8] { engine.reader.storeID }
  /// The sequence of the newest entry that readers see; 0 in an empty store.
  public var lastSequence: UInt64 { engine.reader.lastSequence }
  /// The sequence up to which all entries are known to be on the disk.
  public var durableSequence: UInt64 { engine.reader.durableSequence }

  /// The cursor after the newest entry: a change feed from it delivers only later commits.
  public var cursor: EntryCursor { get throws(TidemarkError) { try engine.reader.bounds().cursor } }
}
