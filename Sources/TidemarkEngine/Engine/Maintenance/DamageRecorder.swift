/// Writes damage that was found into MANIFEST, so that strict openings for writing refuse.
struct DamageRecorder {
  let path: String
  let environment: EngineEnvironment

  /// Records findings that are not on record yet.
  /// - Returns: whether all damage is on record now; false when the store is in use or cannot
  ///   be written.
  func record(_ findings: [VerifyFinding]) throws(TidemarkError) -> Bool {
    let manifests = ManifestStore(environment.fileSystem, storePath: path)
    do throws(TidemarkError) {
      guard let known = try manifests.load() else { return false }
      if Self.missing(findings, in: known.manifest).isEmpty { return true }
      let lock = try StoreDirectory.lock(path, environment)
      defer { lock.release() }
      guard let loaded = try manifests.load() else { return false }
      var manifest = loaded.manifest
      let missing = Self.missing(findings, in: manifest)
      if missing.isEmpty { return true }
      manifest.damage.append(contentsOf: missing)
      // The whole copy is written again first: the update must never begin with the only one.
      try manifests.heal(loaded)
      try manifests.update(&manifest)
      return true
    } catch {
      switch error.code {
      case .locked, .permissionDenied, .noSpace, .damaged, .inputOutput: return false
      default: throw error
      }
    }
  }

  /// Damage that is not on record, as far as there is room for it.
  static func missing(
    _ findings: [VerifyFinding], in manifest: Manifest
  ) -> [Manifest.Damage] {
    let known = Set(
      manifest.damage.filter { $0.state == .found }.map { Place(id: $0.segmentID, at: $0.offset) })
    let room = max(0, Limits.damageRecords - manifest.damage.count)
    return findings.filter { !known.contains(Place(id: $0.segmentID, at: $0.offset)) }
      .prefix(room).map { finding in
        let sequences = finding.sequences ?? 1...1
        return Manifest.Damage(
          state: .found, segmentID: finding.segmentID, offset: finding.offset,
          length: finding.length, firstSequence: sequences.lowerBound,
          lastSequence: sequences.upperBound, reason: Array(finding.message.utf8.prefix(512)))
      }
  }

  private struct Place: Hashable {
    var id: UInt64
    var at: Int
  }
}
