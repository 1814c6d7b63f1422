public import TidemarkEngine

extension Store {
  /// Reads a whole store and checks every checksum and everything that is written behind them.
  /// The store may be open, also in another process.
  ///
  /// ```swift
  /// let report = try await Store.verify(at: path)
  /// for finding in report.findings { print(finding.file, finding.offset, finding.message) }
  /// ```
  /// - Parameters:
  ///   - path: the store's directory.
  ///   - configuration: of it, the keys of an encrypted store count. Without them its checksums are
  ///     checked and not what they stand for.
  ///   - recordsDamage: whether damage to the log is put on record in the store, unless that is in
  ///     use, so that it is not written over: it opens for reading only then.
  /// - Throws: `storeMissing`, `notAStore`, `formatTooNew`; `wrongKey`, `notEncrypted` and
  ///   `encryptionUnavailable` where keys are given; what the system refuses. Damage is reported,
  ///   not thrown.
  public static func verify(
    at path: String, configuration: Configuration = Configuration(), recordsDamage: Bool = true
  ) async throws(TidemarkError) -> VerifyReport {
    try await onOwnThread("tidemark-mend", if: configuration.usesThreads) {
      () throws(TidemarkError) in
      try verifyBlocking(at: path, configuration: configuration, recordsDamage: recordsDamage)
    }
  }

  /// Verifies a store on the calling thread; see
  /// ``verify(at:configuration:recordsDamage:)``.
  public static func verifyBlocking(
    at path: String, configuration: Configuration = Configuration(), recordsDamage: Bool = true
  ) throws(TidemarkError) -> VerifyReport {
    try StoreVerifier.verify(
      path, environment: configuration.environment, recordsDamage: recordsDamage,
      encryption: configuration.encryption)
  }

  /// Brings everything that can still be read of a damaged store into a new one, with sequences,
  /// times, labels and history. What is lost is told, and put on record in the new store. The
  /// damaged one is only read.
  ///
  /// ```swift
  /// let report = try await Store.repair(at: path, into: path + ".new")
  /// if !report.isComplete { print("lost:", report.lostSequences) }
  /// ```
  /// - Parameters:
  ///   - path: the damaged store's directory.
  ///   - target: the new store's: nothing yet, or an empty directory.
  ///   - configuration: of it, the keys of an encrypted store count; the new one is encrypted with
  ///     them, too.
  /// - Throws: `storeMissing`, `notAStore`, `storeExists`, `formatTooNew`; `locked` when somebody,
  ///   this program too, has the store open for writing; `keyMissing`, `wrongKey`, `notEncrypted`
  ///   and `encryptionUnavailable` when keys and store do not go together; what the system
  ///   refuses.
  public static func repair(
    at path: String, into target: String, configuration: Configuration = Configuration()
  ) async throws(TidemarkError) -> RepairReport {
    try await onOwnThread("tidemark-mend", if: configuration.usesThreads) {
      () throws(TidemarkError) in
      try repairBlocking(at: path, into: target, configuration: configuration)
    }
  }

  /// Repairs a store on the calling thread; see ``repair(at:into:configuration:)``.
  public static func repairBlocking(
    at path: String, into target: String, configuration: Configuration = Configuration()
  ) throws(TidemarkError) -> RepairReport {
    try StoreRepair.repair(
      from: path, into: target, environment: configuration.environment,
      encryption: configuration.encryption)
  }

  /// Makes the index anew from the log, which holds everything, and writes a fresh image of it.
  /// Writers wait meanwhile.
  /// - Throws: `closed`, `suspended`, `readOnly`, `poisoned`; `busy` when the store writes parts of
  ///   its index all the while; `damaged` when the log cannot be read.
  public func rebuildIndex() async throws(TidemarkError) {
    try await offPool("tidemark-index") { (store) throws(TidemarkError) in
      try store.rebuildIndex()
    }
  }
}

extension Store.Blocking {
  /// Makes the index anew from the log; see ``Store/rebuildIndex()``.
  public func rebuildIndex() throws(TidemarkError) { try store.engine.reindex() }
}
