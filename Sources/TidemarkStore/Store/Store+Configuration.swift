public import TidemarkEngine

extension Store {
  /// The place where a store keeps its data: a directory or memory.
  public enum Location: Sendable, Hashable {
    /// The store lies in the directory at this path, by convention `NAME.tidemark`.
    case directory(String)
    /// The store is in memory, and its data is gone when the store is closed.
    case inMemory
  }

  /// The rights with which a program opens a store: create, write or read only.
  public enum Access: Sendable, Hashable {
    /// The program reads and writes; opening creates the store when there is none.
    case create
    /// The program reads and writes; opening throws `storeMissing` when there is no store.
    case write
    /// The program only reads. The store takes no lock and writes nothing, so that another process
    /// may write at the same time.
    case readOnly
  }

  /// The way in which opening treats damage to data that was acknowledged to a writer.
  public enum Recovery: Sendable, Hashable {
    /// Opening throws `damaged` and says where the damage is.
    case strict
    /// The store opens for reading only. A read fails where damage may hide the right answer.
    case salvage
  }

  /// The file system, clock and random numbers of a store; tests set their own.
  package typealias Environment = EngineEnvironment

  /// The occasions on which a store compacts its log.
  public enum Compaction: Sendable, Hashable {
    /// In the background when half of the log or more may be dropped by the retention, or when
    /// enough entries are not yet sorted by key. Also on request.
    case automatic
    /// Only by ``Store/compact(dropHistory:dense:dryRun:newKey:waits:)``.
    case onRequest
  }

  /// The settings with which a store is opened. Each property has a default that suits an app.
  public struct Configuration: Sendable {
    /// Whether the program may create the store, write to it, or only read it; ``Access/create`` by
    /// default.
    public var access: Access
    /// The way in which opening treats damage to acknowledged data; ``Recovery/strict`` by default.
    public var recovery: Recovery
    /// The durability of a write that is given none of its own; `buffered` by default.
    public var durability: Durability
    /// The amount of superseded history that the store keeps. Nil leaves the store's setting as it
    /// is; a new store keeps everything.
    public var retention: Retention?
    /// The bytes of memory for all caches of this store together, 32 MiB by default. Values that
    /// were read lately come first. Decoded objects and blocks of the log get the rest, decoded
    /// blocks and headers at least 128 KiB.
    public var cacheBytes: Int
    /// The keys of an encrypted store; nil for a store that is not encrypted. A new store is
    /// encrypted when keys are given.
    public var encryption: Encryption?
    /// The cached values that the store reads into memory after opening; none by default.
    public var warmUp: WarmUp
    /// Whether the store compacts its log in the background, which is the default, or only on
    /// request. A background compaction never drops history that ``retention`` keeps.
    public var compaction: Compaction
    /// A thread for background syncs and index checkpoints that several stores share; nil for a
    /// thread of this store's own.
    public var upkeep: StoreUpkeep?
    /// A cache of decoded blocks and headers that several stores share. Nil for a cache of this
    /// store's own within ``cacheBytes``.
    public var sharedCache: SharedCache?
    /// A handler for the events of the store, for logs, metrics and signposts; nil for none.
    ///
    /// It is called on any thread, also while the store holds locks: it must return soon, and must
    /// not call the store.
    public var onEvent: (@Sendable (StoreEvent) -> Void)?
    package var environment = Environment()
    /// Whether threads sync, checkpoint the index and compact. Without them each write does the
    /// work that is due itself, and async calls block: for simulations, which have one thread.
    package var usesThreads = true
    /// The engine's other settings; those above override what it says.
    package var engine = EngineConfiguration()

    /// The values of caches that are read into memory in the background once a store is open, as
    /// many as half of ``cacheBytes`` holds.
    public enum WarmUp: Sendable, Hashable {
      /// The store reads nothing in advance: values come into memory as they are read.
      case none
      /// The store reads the cached values with the most reads, of equals the one read last.
      case mostUsed
      /// The store reads the cached values that were read last.
      case mostRecent
    }

    /// Creates the settings for opening a store. The defaults suit an app.
    /// - Parameters:
    ///   - access: whether the program may create the store, write to it, or only read it.
    ///   - recovery: whether opening fails on damage or opens the store for reading only.
    ///   - durability: the durability of a write that is given none of its own.
    ///   - retention: how much superseded history is kept; nil leaves the store's setting as it is.
    ///   - cacheBytes: the bytes of memory for all caches of the store; 32 MiB by default.
    ///   - encryption: the keys of an encrypted store; nil for a store that is not encrypted.
    ///   - compaction: whether the store also compacts its log in the background.
    ///   - warmUp: the cached values that the store reads into memory in the background.
    public init(
      access: Access = .create, recovery: Recovery = .strict, durability: Durability = .buffered,
      retention: Retention? = nil, cacheBytes: Int = 32 << 20,
      encryption: Encryption? = nil, compaction: Compaction = .automatic, warmUp: WarmUp = .none
    ) {
      (self.access, self.recovery, self.durability) = (access, recovery, durability)
      (self.retention, self.cacheBytes) = (retention, cacheBytes)
      (self.encryption, self.compaction, self.warmUp) = (encryption, compaction, warmUp)
    }

    /// For tests: with another environment than the machine's, and with or without threads.
    package init(
      access: Access = .create, recovery: Recovery = .strict, durability: Durability = .buffered,
      retention: Retention? = nil, cacheBytes: Int = 32 << 20,
      encryption: Encryption? = nil, environment: Environment, usesThreads: Bool = true
    ) {
      self.init(
        access: access, recovery: recovery, durability: durability, retention: retention,
        cacheBytes: cacheBytes, encryption: encryption)
      (self.environment, self.usesThreads) = (environment, usesThreads)
    }
  }
}

extension Store.Configuration {
  /// Salvage opens for reading only, whatever `access` says.
  package var canWrite: Bool { access != .readOnly && recovery == .strict }

  package func openEngine(at path: String) throws(TidemarkError) -> Engine {
    try Engine.open(path, configuration: engineConfiguration, environment: environment)
  }

  private var engineConfiguration: EngineConfiguration {
    var configuration = engine
    configuration.access =
      switch access {
      case .create: .create
      case .write: .write
      case .readOnly: .readOnly
      }
    configuration.recovery = recovery == .strict ? .strict : .salvage
    configuration.durability = durability
    configuration.retention = retention
    configuration.cacheBytes = cacheBytes
    configuration.sharedCaches = sharedCache?.caches
    configuration.encryption = encryption
    configuration.compactsByItself = compaction == .automatic
    configuration.doesBackgroundWorkInline = !usesThreads
    configuration.onEvent = onEvent
    return configuration
  }
}
