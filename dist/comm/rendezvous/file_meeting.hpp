// The rendezvous by way of a directory that all ranks see. Use rendezvous().
//
//   DIRECTORY/lamina-<hash of the job>/
//     session                         rank 0's token and hello: which run this is
//     waiting.<rank>.<nonce>          somebody who has seen no session yet
//     <token>/<k>.<rank>.<nonce>      what a rank brings to exchange k: hello, blob
//     <token>/all.<k>                 all blobs, with the nonces of those whose they are
//     <token>/verdict.<rank>.<nonce>  what went wrong
//     <token>/left.<rank>             the last to leave removes everything
//
// A run that crashed leaves a session. Nobody believes it: rank 0 writes a new one, and the others believe only what
// has their own nonce in it, which is to say was written by a rank 0 that saw them.
//
// Every file appears whole, by a rename, and ends with a hash. A death shows as a Timeout: files do not tell of it.
#pragma once

#include <filesystem>
#include <memory>

#include "lamina/dist/comm/rendezvous/rendezvous.hpp"

namespace lamina::comm {

/// Throws nothing; the directory is touched when the first exchange begins.
std::unique_ptr<Rendezvous> file_meeting(const Meeting& meeting, std::filesystem::path directory);

}  // namespace lamina::comm
