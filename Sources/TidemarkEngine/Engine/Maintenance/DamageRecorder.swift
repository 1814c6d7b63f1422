extension StoreVerifier {
  /// Writes damage that was found into MANIFEST, so that strict openings for writing refuse.
  /// - Returns: whether all damage is on record now; false when the store is in use or cannot
  ///   be written.
  func record(_ findings: [VerifyFinding]) throws(TidemarkError) -> Bool {
    let manifests = ManifestStore(fileSystem, storePath: path)
    do throws(TidemarkError) {
      guard let known = try manifests.load() else { return false }
      if known.manifest.unrecorded(findings).isEmpty { return true }
      let lock = try StoreDirectory.lock(path, environment)
      defer { lock.release() }
      guard let loaded = try manifests.load() else { return false }
      var manifest = loaded.manifest
      let unrecorded = manifest.unrecorded(findings)
      if unrecorded.isEmpty { return true }
      manifest.damage += unrecorded
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
}

extension Manifest {
  /// Damage that is not on record, as far as there is room for it.
  func unrecorded(_ findings: [VerifyFinding]) -> [Damage] {
    struct Place: Hashable {
      var id: UInt64
      var at: Int
    }
    let known = Set(
      damage.filter { $0.state == .found }.map { Place(id: $0.segmentID, at: $0.offset) })
    return findings.filter { !known.contains(Place(id: $0.segmentID, at: $0.offset)) }
      .prefix(max(0, Limits.damageRecords - damage.count)).map { finding in
        let sequences = finding.sequences ?? 1...1
        return Damage(
          state: .found, segmentID: finding.segmentID, offset: finding.offset,
          length: finding.length, firstSequence: sequences.lowerBound,
          lastSequence: sequences.upperBound, reason: Array(finding.message.utf8.prefix(512)))
      }
  }
}
