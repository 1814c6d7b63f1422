extension StoreVerifier {
  /// Writes damage that was found into MANIFEST, so that openings for writing refuse the store.
  /// - Returns: whether all of it is on record now; false if the store is in use or not writable.
  func record(_ findings: [VerifyFinding]) throws(TidemarkError) -> Bool {
    let manifests = ManifestStore(fileSystem, storePath: path)
    do throws(TidemarkError) {
      guard let known = try manifests.load() else { return false }
      if known.manifest.unrecorded(findings).isEmpty { return true }
      let lock = try StoreDirectory.lock(path, environment)
      defer { lock.release() }
      // Read again: a writer may have changed MANIFEST before the lock was taken.
      guard let loaded = try manifests.load() else { return false }
      var manifest = loaded.manifest
      let unrecorded = manifest.unrecorded(findings)
      if unrecorded.isEmpty { return true }
      manifest.damage += unrecorded
      // Makes both copies whole first: `update` must not begin with the only whole one.
      try manifests.heal(loaded)
      try manifests.update(&manifest)
      return true
    } catch {
      // The caller reports that the damage is not on record; it is in its findings all the same.
      switch error.code {
      case .locked, .permissionDenied, .noSpace, .damaged, .inputOutput: return false
      default: throw error
      }
    }
  }
}

extension Manifest {
  /// Rows for findings that MANIFEST does not list as found, as many as it has room for.
  func unrecorded(_ findings: [VerifyFinding]) -> [Damage] {
    let known = damage.filter { $0.state == .found }
    return findings.filter { finding in
      !known.contains { $0.segmentID == finding.segmentID && $0.offset == finding.offset }
    }.prefix(max(0, Limits.damageRecords - damage.count)).map { finding in
      let sequences = finding.sequences ?? 1...1
      return Damage(
        state: .found, segmentID: finding.segmentID, offset: finding.offset,
        length: finding.length, firstSequence: sequences.lowerBound,
        lastSequence: sequences.upperBound, reason: Array(finding.message.utf8.prefix(512)))
    }
  }
}
