public import TidemarkEngine

extension Store {
  /// Where a store lies.
  public enum Location: Sendable, Hashable {
    /// In a directory, by convention `NAME.tidemark`.
    case directory(String)
    /// In memory; gone when the store is closed.
    case inMemory
  }

  /// What the program may do with the store.
  public enum Access: Sendable, Hashable {
    /// Reads and writes; creates the store when there is none.
    case create
    /// Reads and writes a store that exists.
    case write
    /// Reads; takes no lock and writes nothing, also beside a process that writes.
    case readOnly
  }

  /// What opening does where data is damaged that was acknowledged to a writer.
  public enum Recovery: Sendable, Hashable {
    /// Opening fails and says where the damage is.
    case strict
    /// The store opens for reading only. Reads for which damage may hide the right answer fail.
    case salvage
  }

  /// The file system, clock and random numbers of a store; tests set their own.
  package typealias Environment = EngineEnvironment

  /// When the log is compacted.
  public enum Compaction: Sendable, Hashable {
    /// In the background when half of the log or more may be dropped by the retention, or when
    /// enough entries are not yet sorted by key. Also on request.
    case automatic
    /// Only by ``Store/compact(dropHistory:dense:dryRun:newKey:waits:)``.
    case onRequest
  }

  /// How a store is opened.
  public struct Configuration: Sendable {
    /// What the program may do with the store.
    public var access: Access
    /// What opening does about damage.
    public var recovery: Recovery
    /// When a write returns that is given no durability of its own.
    public var durability: Durability
    /// How much superseded history is kept; nil leaves that as it is, which is everything in a
    /// new store.
    public var retention: Retention?
    /// Bytes of memory for all caches together: first for values that were read lately; decoded
    /// objects and blocks of the log get the rest, decoded blocks and headers at least 128 KiB.
    public var cacheBytes: Int
    /// The keys that the store is encrypted with; nil for a store that is not. A new store is
    /// encrypted when keys are given.
    public var encryption: Encryption?
    /// The cached values that are read into memory once the store is open.
    public var warmUp: WarmUp
    /// When the log is compacted. A compaction in the background never drops what ``retention``
    /// keeps.
    public var compaction: Compaction
    /// The thread for background syncs and index checkpoints, where stores share one; nil for one
    /// of the store's own.
    public var upkeep: StoreUpkeep?
    /// The cache of decoded blocks and headers, where stores share one; nil for one of the store's
    /// own within ``cacheBytes``.
    public var sharedCache: SharedCache?
    package var environment = Environment()
    /// Whether threads sync, checkpoint the index and compact. Without them each write does the
    /// work that is due itself, and async calls block: for simulations, which have one thread.
    package var usesThreads = true
    /// The engine's other settings; those above override what it says.
    package var engine = EngineConfiguration()

    /// The values of caches that are read into memory in the background once a store is open, as
    /// many as half of ``cacheBytes`` holds.
    public enum WarmUp: Sendable, Hashable {
      /// None: values come into memory as they are read.
      case none
      /// The values that were read most often.
      case mostUsed
      /// The values that were read last.
      case mostRecent
    }

    /// How a store is opened.
    /// - Parameters:
    ///   - access: what the opening may do.
    ///   - recovery: what to do about damage.
    ///   - durability: when a write returns that is given no durability of its own.
    ///   - retention: how much superseded history is kept; nil leaves that as it is.
    ///   - cacheBytes: memory for values that were read lately and decoded parts of the log.
    ///   - encryption: the keys that the store is encrypted with; nil for a store that is not.
    ///   - compaction: whether the log is also compacted when nobody asks for it.
    ///   - warmUp: the cached values that are read into memory, in the background.
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
    return configuration
  }
}
