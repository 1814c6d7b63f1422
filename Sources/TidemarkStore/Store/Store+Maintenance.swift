public import TidemarkEngine

extension Store {
  /// Reads a whole store and checks every checksum and all content of log, index and attachments.
  /// The store may be open, also in another process.
  ///
  /// ```swift
  /// let report = try await Store.verify(at: path)
  /// for finding in report.findings { print(finding.file, finding.offset, finding.message) }
  /// ```
  /// - Parameters:
  ///   - path: the store's directory.
  ///   - configuration: used for the keys of an encrypted store. Without the keys its checksums are
  ///     checked, not its content.
  ///   - recordsDamage: whether damage to the log is recorded in a store that nobody has open for
  ///     writing. Such a store opens for reading only, so that the damage is not written over.
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

  /// Verifies a store on the calling thread; see ``verify(at:configuration:recordsDamage:)``.
  public static func verifyBlocking(
    at path: String, configuration: Configuration = Configuration(), recordsDamage: Bool = true
  ) throws(TidemarkError) -> VerifyReport {
    try StoreVerifier.verify(
      path, environment: configuration.environment, recordsDamage: recordsDamage,
      encryption: configuration.encryption)
  }

  /// Copies everything readable of a damaged store into a new one, with sequences, times, labels
  /// and history. The report, and a record in the new store, say which entries are lost. The
  /// damaged store is not changed.
  ///
  /// ```swift
  /// let report = try await Store.repair(at: path, into: path + ".new")
  /// if !report.isComplete { print("lost:", report.lostSequences) }
  /// ```
  /// - Parameters:
  ///   - path: the damaged store's directory.
  ///   - target: the new store's directory: absent or empty.
  ///   - configuration: used for the keys of an encrypted store; the new store is encrypted with
  ///     the same keys.
  /// - Throws: `storeMissing`, `notAStore`, `storeExists`, `formatTooNew`; `locked` when this or
  ///   another process has the store open for writing; `keyMissing`, `wrongKey`, `notEncrypted` and
  ///   `encryptionUnavailable` when keys and store do not match; errors of the system.
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

  /// Rebuilds the index from the log, which holds everything, and writes it as one sorted run in
  /// the place of all others. Writers wait meanwhile.
  /// - Throws: `closed`, `suspended`, `readOnly`, `poisoned`; `busy` when runs of the index are
  ///   being written all the while; `damaged` when the log cannot be read.
  public func rebuildIndex() async throws(TidemarkError) {
    try await offPool("tidemark-index") { (store) throws(TidemarkError) in
      try store.rebuildIndex()
    }
  }
}

extension Store.Blocking {
  /// Rebuilds the index from the log; see ``Store/rebuildIndex()``.
  public func rebuildIndex() throws(TidemarkError) { try store.engine.reindex() }
}
