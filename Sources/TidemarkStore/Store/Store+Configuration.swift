public import TidemarkEngine

extension Store {
  /// Where a store lies.
  public enum Location: Sendable, Hashable {
    /// In a directory, by convention `NAME.tidemark`.
    case directory(String)
    /// In memory; gone when the store is closed.
    case inMemory
  }

  /// The access that an opening has.
  public enum Access: Sendable, Hashable {
    /// Reads and writes; creates the store when there is none.
    case create
    /// Reads and writes a store that exists.
    case write
    /// Reads; takes no lock and writes nothing, also beside a process that writes.
    case readOnly
  }

  /// The reaction of an opening to damaged data that was acknowledged.
  public enum Recovery: Sendable, Hashable {
    /// Fails and says where.
    case strict
    /// Opens for reading only and reads around the damage: what may be wrong fails to read.
    case salvage
  }

  /// The disk, the clocks and the chance that a store runs on; tests put their own in.
  package typealias Environment = EngineEnvironment

  /// When the log is compacted.
  public enum Compaction: Sendable, Hashable {
    /// In the background when it pays: where half of the log or more may go by the retention, and
    /// where enough has come that is not in the order of keys yet. Also when it is asked for.
    case automatic
    /// Only when it is asked for.
    case onRequest
  }

  /// How a store is opened.
  public struct Configuration: Sendable {
    /// The access that the opening has.
    public var access: Access
    /// The reaction to damage.
    public var recovery: Recovery
    /// When a write is answered that does not say otherwise.
    public var durability: Durability
    /// How much superseded history is kept; nil leaves that as it is, which is everything in a
    /// new store.
    public var retention: Retention?
    /// Bytes of memory for all caches together: values that were read lately, and in what these
    /// leave decoded objects and parts of the log. However few, decoded parts may have 128 KiB.
    public var cacheBytes: Int
    /// The keys that the store is encrypted with; nil for a store that is not. A new store is
    /// encrypted when keys are given.
    public var encryption: Encryption?
    /// The cached values that are read into memory once the store is open; none unless it is told
    /// otherwise.
    public var warmUp: WarmUp
    /// When the log is compacted. By itself a store never drops what the retention keeps, which is
    /// everything unless it is told otherwise.
    public var compaction: Compaction
    /// The thread that does what nobody waits for, where stores share one; nil for one of the
    /// store's own.
    public var upkeep: StoreUpkeep?
    /// The cache of decoded parts of logs, where stores share one; nil for one of the store's own
    /// within ``cacheBytes``.
    public var sharedCache: SharedCache?
    package var environment = Environment()
    /// Whether threads of the store's own sync and write index images. Without them every write
    /// does what is due itself, and async calls block: for simulations, which have one thread.
    package var usesThreads = true
    /// The engine's settings beside the above.
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
    ///   - durability: when a write is answered that does not say otherwise.
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
      self.warmUp = warmUp
      self.compaction = compaction
      self.access = access
      self.recovery = recovery
      self.durability = durability
      self.retention = retention
      self.cacheBytes = cacheBytes
      self.encryption = encryption
    }

    /// How a store under test is opened: on what it is given in place of the machine's own.
    package init(
      access: Access = .create, recovery: Recovery = .strict, durability: Durability = .buffered,
      retention: Retention? = nil, cacheBytes: Int = 32 << 20,
      encryption: Encryption? = nil, environment: Environment, usesThreads: Bool = true
    ) {
      self.init(
        access: access, recovery: recovery, durability: durability, retention: retention,
        cacheBytes: cacheBytes, encryption: encryption)
      self.environment = environment
      self.usesThreads = usesThreads
    }
  }
}

extension Store.Configuration {
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
