#include "lamina/dist/comm/transport/blob.hpp"

#include <sstream>

#include "lamina/core/error.hpp"

namespace lamina::comm {

std::vector<Blob> exchange_blobs(Rendezvous& rendezvous, const Blob& mine, int rank, int size) {
  std::string text = mine.kind;
  for (const std::string& field : mine.fields) text += '\n' + field;
  const std::vector<std::string> all = rendezvous.exchange(text);
  if (static_cast<int>(all.size()) != size) {
    fail<Mismatch>(mine.kind, "the rendezvous is of {} ranks, the transport of {}", all.size(), size);
  }
  std::vector<Blob> blobs;
  for (int peer = 0; peer < size; ++peer) {
    Blob& blob = blobs.emplace_back();
    std::istringstream lines(all[peer]);
    std::getline(lines, blob.kind);
    for (std::string line; std::getline(lines, line);) blob.fields.push_back(line);
    blob.fields.resize(std::max(blob.fields.size(), mine.fields.size()));  // getline drops an empty last one
    if (blob.kind != mine.kind || blob.fields.size() != mine.fields.size()) {
      fail<Mismatch>("transport", "rank {} uses {}, rank {} uses {}", rank, mine.kind, peer, blob.kind);
    }
  }
  return blobs;
}

}  // namespace lamina::comm
