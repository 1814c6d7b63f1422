internal import TidemarkEngine

extension FileNode {
  /// The file as a power cut leaves it.
  ///
  /// Changes of length survive in order, up to some point. Sectors survive each on its own, but
  /// what a surviving truncation cut off does not come back.
  func surviving(_ decider: inout SurvivalDecider, stale: () -> [UInt8]) -> PagedBytes {
    let lengths = decider.lengths(pending.filter(\.changesLength).map(\.stamp))
    var fates: [SectorFate] = []
    var lost: [Int] = []
    let sectors = touchedSectors()
    decider.beginFile(sectors: sectors.count)
    for touched in sectors {
      let fate = decider.sector(touched)
      if fate.through == .min, fate.tear.isEmpty { lost.append(touched.sector) }
      fates.append(fate)
    }

    var image = durable
    var lengthChanges = 0
    for change in pending {
      var keepsLength = false
      if change.changesLength {
        keepsLength = lengthChanges < lengths
        lengthChanges += 1
      }
      switch change.effect {
      case .resize(let length): if keepsLength { image.setLength(length) }
      case .reserve(let length): if keepsLength { image.reserve(to: length) }
      case .write(let offset, let bytes, _):
        if keepsLength { image.extend(to: offset + bytes.count) }
        Self.apply(bytes, at: offset, stamp: change.stamp, fates, to: &image)
      }
    }
    if decider.leavesStaleBlocks {
      let first = PagedBytes.pages(for: durable.length) * PagedBytes.pageBytes / Self.sectorBytes
      for sector in lost where sector >= first {
        image.write(stale(), 0..<Self.sectorBytes, at: sector * Self.sectorBytes)
        decider.counts.add(.sectorStale)
      }
    }
    image.trim()
    return image
  }

  /// The sectors that un-synced writes touched, ascending.
  private func touchedSectors() -> [TouchedSector] {
    var touched: [TouchedSector] = []
    for change in pending {
      guard case .write(let offset, let bytes, _) = change.effect, !bytes.isEmpty else { continue }
      let end = offset + bytes.count
      for sector in (offset / Self.sectorBytes)...((end - 1) / Self.sectorBytes) {
        let base = sector * Self.sectorBytes
        let range = max(0, offset - base)..<min(Self.sectorBytes, end - base)
        touched.append(TouchedSector(sector: sector, stamps: [change.stamp], range: range))
      }
    }
    touched.sort { ($0.sector, $0.stamps[0]) < ($1.sector, $1.stamps[0]) }
    var result: [TouchedSector] = []
    for next in touched {
      guard let last = result.last, last.sector == next.sector else {
        result.append(next)
        continue
      }
      result[result.count - 1].add(next)
    }
    return result
  }

  private static func fate(of sector: Int, in fates: [SectorFate]) -> SectorFate? {
    let index = fates.partitioningIndex { $0.sector >= sector }
    return index < fates.count && fates[index].sector == sector ? fates[index] : nil
  }

  private static func apply(
    _ bytes: [UInt8], at offset: Int, stamp: Int, _ fates: [SectorFate],
    to image: inout PagedBytes
  ) {
    let end = offset + bytes.count
    var start = offset
    while start < end {
      let sector = start / sectorBytes
      let base = sector * sectorBytes
      let stop = min(end, base + sectorBytes)
      guard let fate = fate(of: sector, in: fates) else { return }
      if stamp > fate.after, stamp <= fate.through {
        image.write(bytes, (start - offset)..<(stop - offset), at: start)
      } else if stamp <= fate.tornThrough {
        for range in fate.tear {
          let from = max(start, base + range.lowerBound)
          let to = min(stop, base + range.upperBound)
          if from < to { image.write(bytes, (from - offset)..<(to - offset), at: from) }
        }
      }
      start = stop
    }
  }
}
